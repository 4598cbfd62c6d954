"""Trace two machines for `ethermem replay`: pages, disks and network of a server and its client.

The machines are network namespaces of this one, joined by a veth pair, each with a disk of its own:
a loop device with ext4. The server sends files that the client asks for, and reads others for
itself. The client stores on its disk what it receives. Both run under `ethermem profile`, if a
command is given; tcpdump records the network, and the kernel the disks, in blktrace's format. Needs
root, tcpdump, mkfs.ext4, and a kernel with CONFIG_BLK_DEV_IO_TRACE.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PORT = 7900
ADDRESSES = {"server": "10.77.0.1", "client": "10.77.0.2"}
DISK_MIB = 256
# The server reads another file for itself after one of so many.
OTHERS_EVERY = 3


def run(*words: str | Path, check: bool = True) -> str:
    """The output of a command."""
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False
    )
    if check and done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout.strip()


def within(machine: str, *words: str | Path) -> list[str]:
    """A command in the network namespace of a machine."""
    return ["ip", "netns", "exec", namespace(machine), *map(str, words)]


def namespace(machine: str) -> str:
    """The network namespace of a machine, unique to this process."""
    return f"em{os.getpid()}{machine[0]}"


def file_bytes(index: int, options: argparse.Namespace) -> int:
    """Size of a file: 16 KiB to the largest, drawn from its number."""
    blocks = random.Random(index).randint(4, options.file_kib // 4)
    return 4096 * blocks


@contextlib.contextmanager
def network() -> Iterator[None]:
    """Two namespaces and the veth pair between them."""
    names = {machine: namespace(machine) for machine in ADDRESSES}
    try:
        for name in names.values():
            run("ip", "netns", "add", name)
        ends = {machine: f"{name}v" for machine, name in names.items()}
        run("ip", "link", "add", ends["server"], "type", "veth", "peer", "name", ends["client"])
        for machine, address in ADDRESSES.items():
            run("ip", "link", "set", ends[machine], "netns", names[machine])
            run(*within(machine, "ip", "addr", "add", f"{address}/24", "dev", ends[machine]))
            run(*within(machine, "ip", "link", "set", ends[machine], "up"))
        yield
    finally:
        for name in names.values():
            run("ip", "netns", "del", name, check=False)


@contextlib.contextmanager
def disk(folder: Path, machine: str) -> Iterator[tuple[str, Path]]:
    """A loop device with ext4, and where it is mounted."""
    image, mount = folder / f"{machine}.img", folder / f"{machine}.mount"
    with image.open("wb") as file:
        file.truncate(DISK_MIB << 20)
    run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", image)
    mount.mkdir()
    device = run("losetup", "--show", "--find", "--direct-io=off", image)
    try:
        run("mount", device, mount)
        try:
            yield device, mount
        finally:
            run("umount", mount, check=False)
    finally:
        run("losetup", "--detach", device, check=False)


def recv_exactly(connection: socket.socket, count: int) -> bytes:
    """The next octets of a connection."""
    received = bytearray()
    while len(received) < count:
        piece = connection.recv(count - len(received))
        if not piece:
            sys.exit("the other machine closed the connection")
        received += piece
    return bytes(received)


def serve(options: argparse.Namespace) -> None:
    """The server: sends the files that are asked for, and reads some others."""
    folder = Path(options.folder)
    with socket.create_server((ADDRESSES["server"], PORT)) as listener:
        connection, _ = listener.accept()
        with connection:
            for turn in range(options.files):
                index = int.from_bytes(recv_exactly(connection, 4), "big")
                data = (folder / f"{index}").read_bytes()
                connection.sendall(data)
                if turn % OTHERS_EVERY == 0:
                    (folder / f"other{turn}").read_bytes()


def ask(options: argparse.Namespace) -> None:
    """The client: asks for files, stores each on its disk."""
    folder = Path(options.folder)
    draw = random.Random(1)
    for _ in range(100):
        with contextlib.suppress(ConnectionRefusedError):
            connection = socket.create_connection((ADDRESSES["server"], PORT))
            break
        time.sleep(0.1)
    else:
        sys.exit("no server")
    with connection:
        for index in range(options.files):
            connection.sendall(index.to_bytes(4, "big"))
            data = recv_exactly(connection, file_bytes(index, options))
            with (folder / f"{index}").open("wb") as file:
                file.write(data)
                os.fsync(file.fileno())
            time.sleep(draw.uniform(0.0, 2e-3 * options.pause_ms))


def program(options: argparse.Namespace, machine: str, mount: Path) -> list[str]:
    """The command line of one machine's program, profiled unless asked otherwise."""
    role = "--serve" if machine == "server" else "--ask"
    words = [sys.executable, "-B", __file__, role, "--folder", mount, "--out", options.out]
    words += ["--files", options.files, "--file-kib", options.file_kib]
    words += ["--pause-ms", options.pause_ms]
    if options.command:
        pages = options.out / f"{machine}.parquet"
        profile = [options.command, "profile", "--local", options.local, "--out", pages, "--"]
        words = [*profile, *words]
    return within(machine, *words)


class DiskTracer:
    """Records of two disks in blktrace's format.

    They come from the kernel's own tracer `blk` in its binary form: a kernel that is locked down
    keeps blktrace from the files that it reads, and gives these. A time stamp of the wall clock,
    which blktrace has the kernel write, is put in front of each.
    """

    FOLDER = Path("/sys/kernel/tracing")
    RECORD = struct.Struct("<IIQQIIIIIHH")
    MAGIC = 0x65617407
    STAMP = 0x04000001

    def __init__(self, devices: dict[str, str]) -> None:
        """Starts to record the device of each machine."""
        self.numbers = {}
        for machine, device in devices.items():
            number = Path(device).stat().st_rdev
            # As the kernel numbers devices: 12 bits and 20.
            self.numbers[os.major(number) << 20 | os.minor(number)] = machine
        self.enables = [
            Path("/sys/block", Path(device).name, "trace/enable") for device in devices.values()
        ]
        self.was_on = (self.FOLDER / "tracing_on").read_text().strip()
        if (self.FOLDER / "current_tracer").read_text().strip() != "nop":
            sys.exit("/sys/kernel/tracing: a tracer is in use: must be nop")
        for name, value in self.settings("blk", "mono", "1", "0", "1"):
            (self.FOLDER / name).write_text(value)
        self.pieces: dict[int, list[bytes]] = {}
        self.is_over = threading.Event()
        self.readers = []
        for folder in sorted((self.FOLDER / "per_cpu").iterdir()):
            processor = int(folder.name.removeprefix("cpu"))
            self.pieces[processor] = []
            reader = threading.Thread(target=self.read, args=(folder, processor))
            reader.start()
            self.readers.append(reader)
        for enable in self.enables:
            enable.write_text("1")
        self.stamp = time.clock_gettime_ns(time.CLOCK_MONOTONIC), time.time_ns()

    @staticmethod
    def settings(
        tracer: str, clock: str, binary: str, info: str, is_on: str
    ) -> list[tuple[str, str]]:
        """Values of the kernel's settings, in order."""
        return [
            ("current_tracer", tracer),
            ("trace_clock", clock),
            ("options/bin", binary),
            ("options/context-info", info),
            ("tracing_on", is_on),
        ]

    def read(self, folder: Path, processor: int) -> None:
        """Collects what one processor recorded."""
        pipe = os.open(folder / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
        try:
            while True:
                was_over = self.is_over.is_set()
                try:
                    while piece := os.read(pipe, 1 << 16):
                        self.pieces[processor].append(piece)
                except BlockingIOError:
                    pass
                if was_over:
                    return
                time.sleep(0.01)
        finally:
            os.close(pipe)

    def stop(self, out: Path) -> None:
        """Writes the files MACHINE.blktrace.PROCESSOR, and leaves the kernel as it was."""
        for enable in self.enables:
            enable.write_text("0")
        self.is_over.set()
        for reader in self.readers:
            reader.join()
        for name, value in self.settings("nop", "local", "0", "1", self.was_on):
            (self.FOLDER / name).write_text(value)
        for processor, pieces in self.pieces.items():
            files = {machine: bytearray() for machine in self.numbers.values()}
            if processor == 0:
                mono, wall = self.stamp
                clock = struct.pack("<II", wall // 10**9, wall % 10**9)
                head = (self.MAGIC, 0, mono, 0, 0, self.STAMP, 0, 0, 0, 0, len(clock))
                for file in files.values():
                    file.extend(self.RECORD.pack(*head) + clock)
            data, at = b"".join(pieces), 0
            while at < len(data):
                record = self.RECORD.unpack_from(data, at)
                end = at + self.RECORD.size + record[-1]
                machine = self.numbers.get(record[7])
                if record[0] != self.MAGIC or end > len(data):
                    sys.exit(f"octet {at} of processor {processor}: no whole record of blktrace")
                if machine:
                    files[machine] += data[at:end]
                at = end
            for machine, file in files.items():
                (out / f"{machine}.blktrace.{processor}").write_bytes(file)


def capture(options: argparse.Namespace, folder: Path) -> None:
    """Everything recorded while the two programs run."""
    with network(), contextlib.ExitStack() as stack:
        disks = {machine: stack.enter_context(disk(folder, machine)) for machine in ADDRESSES}
        mount = disks["server"][1]
        for index in range(options.files):
            (mount / f"{index}").write_bytes(os.urandom(file_bytes(index, options)))
            if index % OTHERS_EVERY == 0:
                (mount / f"other{index}").write_bytes(os.urandom(64 << 10))
        os.sync()
        # Without this, no file would be read from the disk.
        Path("/proc/sys/vm/drop_caches").write_text("1")
        dumps = []
        for machine in ADDRESSES:
            words = within(machine, "tcpdump", "-i", f"{namespace(machine)}v", "-U", "-Z", "root")
            words += ["-s", "96", "--immediate-mode", "--time-stamp-precision=nano", "tcp"]
            words += ["-w", str(options.out / f"{machine}.pcap")]
            dumps.append(subprocess.Popen(words, stderr=subprocess.DEVNULL))
        tracer = DiskTracer({machine: device for machine, (device, _) in disks.items()})
        time.sleep(1.5)
        programs, starts = [], []
        for machine, (_, mount) in disks.items():
            starts.append(f"{time.time():.6f}")
            programs.append(subprocess.Popen(program(options, machine, mount)))
        codes = [program.wait() for program in programs]
        time.sleep(0.5)
        tracer.stop(options.out)
        for dump in dumps:
            dump.send_signal(signal.SIGINT)
            dump.wait()
    if any(codes):
        sys.exit(f"the programs ended with {codes}")
    print(f"--start-s {' --start-s '.join(starts)}")


def main() -> None:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the traces")
    parser.add_argument("--command", help="ethermem, to trace pages as well")
    parser.add_argument("--local", default="8MiB", help="local memory of each program, a size")
    parser.add_argument("--files", type=int, default=60, help="files that are sent")
    parser.add_argument("--file-kib", type=int, default=1024, help="largest file")
    parser.add_argument("--pause-ms", type=float, default=20.0, help="mean pause of the client")
    for hidden in ("--serve", "--ask"):
        parser.add_argument(hidden, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options)
    elif options.ask:
        ask(options)
    else:
        options.out = options.out.resolve()
        options.out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            capture(options, Path(folder))


if __name__ == "__main__":
    main()
