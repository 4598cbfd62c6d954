#!/usr/bin/env python3
"""Measure gets from a memory node beside gets from Mooncake's store over TCP, both from Python.

    python3 scripts/bench_mooncake.py --mooncake FOLDER [--command target/release/ethermem]
        [--rounds 7] [--gets 2000] [--awake]

FOLDER is a Python environment with `mooncake-transfer-engine`, or its `-non-cuda` variant. This
script itself needs a Python with a release build of `ethermem`. All servers run all the while; each
round measures both systems, in alternating order. Objects are drawn at random, every get is
checked.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from bench_kv import free_port, started
from mooncake_peer import Form, Gets, Objects, WrongBytesError
from swap_programs.command import BenchError, Parser, folder, markdown, spread, whole

try:
    import ethermem
    from ethermem import kv
except ImportError as error:
    print(f"error: {error}: this Python must have a release build of ethermem", file=sys.stderr)
    sys.exit(2)

NS_PER_US = 1000
ANSWER_S_MAX = 300
START_S_MAX = 30
RATIO_MIN = 2
# Mooncake's documentation advises a pool of connections over TCP; without it each get connects.
SETTINGS = {"MC_TCP_ENABLE_CONNECTION_POOL": "1"}


@dataclass(frozen=True)
class Case:
    """What one get returns, and the ways to get it: several of theirs, one of ours."""

    name: str
    objects: Objects
    rows: int
    theirs: tuple[str, ...]
    ours: str
    # The same bytes from process to process without any protocol: what the kernel takes.
    floor: tuple[str, ...] = ()


SIZES = {"264 B": Objects(264, 16384), "4 KiB": Objects(4096, 4096), "1 MiB": Objects(1 << 20, 64)}
KNOWN = "place known"
SOCKETS = "plain UDP sockets"
# A datagram of the floor: about the longest, as those of a long read are.
DATAGRAM_BYTES = 65_000
RECEIVE_BYTES = 8 << 20
# What the kernel counts for one of them in a socket's buffer, at most.
COUNTED_BYTES = 2 * DATAGRAM_BYTES
CASES = [
    *(
        case
        for name, objects in SIZES.items()
        for case in (
            Case(f"{name}, by key", objects, 1, ("get", "get_into"), "Client.read_into"),
            Case(
                f"{name}, {KNOWN}",
                objects,
                1,
                ("session",),
                "Region.read_into",
                (SOCKETS,) if objects.size > DATAGRAM_BYTES else (),
            ),
        )
    ),
    Case("64 of 264 B, by key", SIZES["264 B"], 64, ("batch_get_into",), "Client.read"),
    Case(
        f"64 of 264 B, {KNOWN}",
        SIZES["264 B"],
        64,
        ("batch_get_into", "get_into_ranges", "session"),
        "Thread.gather_into",
    ),
]
# What keeps a processor from halting, and gives way to any other program at once.
SPIN = """
import os
os.sched_setaffinity(0, {%d})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
while True:
    pass
"""
# Objects of which every byte is compared before the rounds, by each way.
CHECKED_OBJECTS = 128


class Peer:
    """A client of Mooncake's store: mooncake_peer.py under Mooncake's Python."""

    def __init__(self, python: Path, role: str, master: str, environment: dict[str, str]) -> None:
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        script = Path(__file__).with_name("mooncake_peer.py")
        self.process = subprocess.Popen(
            [python, script, role, master],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env=environment,
        )

    def answer(self) -> Any:
        """Return the next answer."""
        timer = threading.Timer(ANSWER_S_MAX, self.process.kill)
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        if not line:
            self.process.wait()
            self.errors.seek(0)
            said = ["ended", *filter(None, map(str.strip, self.errors))]
            line = next((text for text in said if text.startswith("error: ")), said[-1])
            raise BenchError(f"Mooncake's client: {line.removeprefix('error: ')}")
        return json.loads(line)

    def ask(self, do: str, objects: Objects, **words: Any) -> Any:
        """Send a request about objects, and return its answer."""
        request = {"do": do, "size": objects.size, "count": objects.count, "words": words}
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        return self.answer()


@contextlib.contextmanager
def peer(*words: Any) -> Iterator[Peer]:
    """Run a client of Mooncake's store."""
    running = Peer(*words)
    try:
        running.answer()
        yield running
    finally:
        running.process.kill()
        running.process.wait()


@contextlib.contextmanager
def master(program: Path, environment: dict[str, str]) -> Iterator[str]:
    """Run Mooncake's master, and return its address once it listens."""
    port, metrics = free_port(), free_port()
    command = [program, f"--rpc_port={port}", f"--metrics_port={metrics}"]
    command += ["--rpc_address=127.0.0.1", "--metrics_host=127.0.0.1"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=environment, **quiet) as process:
        try:
            deadline = time.monotonic() + START_S_MAX
            while True:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                if process.poll() is not None or time.monotonic() > deadline:
                    raise BenchError(f"{program} did not start")
                time.sleep(0.1)
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()


@contextlib.contextmanager
def mooncake(options: argparse.Namespace) -> Iterator[Peer]:
    """Run Mooncake's store, filled, and return the client that gets."""
    environment = SETTINGS | dict(os.environ)
    python, program = (options.mooncake / "bin" / name for name in ("python", "mooncake_master"))
    with (
        master(program, environment) as address,
        peer(python, "hold", address, environment) as holder,
        peer(python, "get", address, environment) as getter,
    ):
        for objects in SIZES.values():
            holder.ask("put", objects)
            own, at = getter.ask("where", objects)
            if own == at:
                raise BenchError(f"objects of {objects.size} B are in the getting client's memory")
        yield getter


@contextlib.contextmanager
def awake() -> Iterator[None]:
    """Keep every processor of this program from halting."""
    loops = [subprocess.Popen([sys.executable, "-c", SPIN % at]) for at in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def answer_by_datagrams(at: socket.socket, objects: Objects) -> None:
    """Answer each request for parts of an object, a datagram each; never sleep."""
    held = memoryview(b"".join(map(objects.contents, range(objects.count))))
    at.setblocking(False)
    while True:
        with contextlib.suppress(BlockingIOError):
            request, asker = at.recvfrom(64)
            index, first, past = map(int, request.split())
            start, end = index * objects.size, (index + 1) * objects.size
            for part in range(first, past):
                part_start = start + part * DATAGRAM_BYTES
                at.sendto(held[part_start : min(part_start + DATAGRAM_BYTES, end)], asker)


class Sockets(Gets):
    """Objects of another process, by plain sockets that poll."""

    def __init__(self, near: socket.socket) -> None:
        super().__init__()
        self.near = near

    def made(self, name: str, objects: Objects, rows: int) -> Form:
        """Return the way to get objects."""
        assert (name, rows) == (SOCKETS, 1)
        buffer, parts = memoryview(bytearray(objects.size)), -(-objects.size // DATAGRAM_BYTES)
        # No more is under way than the buffer of this socket takes.
        room = self.near.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // COUNTED_BYTES
        begun = min(parts, max(1, room))

        def get(index: int) -> None:
            self.near.send(b"%d 0 %d" % (index, begun))
            filled, asked, deadline = 0, begun, time.monotonic() + START_S_MAX
            while filled < objects.size:
                try:
                    filled += self.near.recv_into(buffer[filled:])
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise BenchError(f"{SOCKETS}: a datagram was lost") from None
                    continue
                if asked < parts:
                    self.near.send(b"%d %d %d" % (index, asked, asked + 1))
                    asked += 1

        return Form(lambda order: (order[0],), get, buffer)


@contextlib.contextmanager
def sockets(objects: Objects) -> Iterator[Sockets]:
    """Run a process that has the objects."""
    with (
        socket.socket(type=socket.SOCK_DGRAM) as far,
        socket.socket(type=socket.SOCK_DGRAM) as near,
    ):
        near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        far.bind(("127.0.0.1", 0))
        near.connect(far.getsockname())
        near.setblocking(False)
        spawning = multiprocessing.get_context("spawn")
        process = spawning.Process(target=answer_by_datagrams, args=(far, objects), daemon=True)
        process.start()
        try:
            yield Sockets(near)
        finally:
            process.kill()
            process.join()


class Ours(Gets):
    """A pool on a memory node with the objects, at addresses and in a key-value store."""

    def __init__(self, pool: ethermem.Pool) -> None:
        super().__init__()
        self.thread = pool.thread()
        self.client = kv.Store.create(pool).wait().client()
        self.regions: dict[Objects, ethermem.Region] = {}
        for objects in SIZES.values():
            region = self.thread.alloc(objects.size * objects.count).wait()
            for index in range(objects.count):
                contents = objects.contents(index)
                region.write_from(index * objects.size, contents)
                self.client.put(objects.key(index).encode(), contents).wait()
            self.regions[objects] = region

    def made(self, name: str, objects: Objects, rows: int) -> Form:
        """Return a way to get objects."""
        region, size, read = self.regions[objects], objects.size, self.client.read
        buffer = memoryview(bytearray(size * rows))
        if name == "Client.read":

            def keys(order: list[int]) -> list[bytes]:
                return [objects.key(index).encode() for index in order]

            return Form(keys, lambda *keys: b"".join([read(key).wait() for key in keys]), None)
        if name == "Client.read_into":

            def key(order: list[int]) -> tuple[bytes, memoryview]:
                return objects.key(order[0]).encode(), buffer

            return Form(key, self.client.read_into, buffer)
        if name == "Region.read_into":
            return Form(lambda order: (order[0] * size, buffer), region.read_into, buffer)

        def gather(order: list[int]) -> tuple[list[tuple[int, int]], memoryview]:
            return [(region.address + index * size, size) for index in order], buffer

        return Form(gather, self.thread.gather_into, buffer)


def percentiles(taken: list[int]) -> tuple[float, float]:
    """Return the median and the 99th percentile, in microseconds."""
    cuts = statistics.quantiles(taken, n=100, method="inclusive")
    return cuts[49] / NS_PER_US, cuts[98] / NS_PER_US


# The p50 and p99 of each round, by way.
Found = dict[str, list[tuple[float, float]]]


def measure(options: argparse.Namespace, getter: Peer, pool: Ours) -> dict[str, Found]:
    """Measure both by turns, and return what was found of each case."""

    def get(do: str, form: str, case: Case, gets: int, seed: int) -> list[int]:
        words = {"name": form, "rows": case.rows, "gets": gets, "seed": seed}
        if form in case.theirs:
            return getter.ask(do, case.objects, **words)
        return getattr(pool, do)(objects=case.objects, **words)

    found: dict[str, Found] = {case.name: {} for case in CASES}
    for case in CASES:
        for form in (*case.theirs, case.ours):
            get("check", form, case, max(1, CHECKED_OBJECTS // case.rows), 0)
        found[case.name] = {form: [] for form in (*case.theirs, case.ours, *case.floor)}
        # The first round opens connections, and is left out.
        for number in range(options.rounds + 1):
            turns = [case.theirs, (case.ours,), case.floor]
            for form in chain(*(turns if number % 2 == 0 else reversed(turns))):
                if form in case.floor:
                    with sockets(case.objects) as floor:
                        floor.check(form, case.objects, case.rows, CHECKED_OBJECTS, 0)
                        words = (form, case.objects, case.rows, options.gets, number)
                        taken = floor.measure(*words)
                else:
                    taken = get("measure", form, case, options.gets, number)
                if number > 0:
                    found[case.name][form].append(percentiles(taken))
    return found


def row(case: Case, found: Found) -> list[str]:
    """Return the cells of one case: Mooncake's faster way, ours, the ratio, and the floor."""
    theirs = min(case.theirs, key=lambda form: statistics.median(p50 for p50, _ in found[form]))
    cells = [case.name]
    for form in (theirs, case.ours):
        cells += [f"`{form}`", *map(spread, zip(*found[form], strict=True), (1, 1))]
    pairs = zip(found[theirs], found[case.ours], strict=True)
    ratios = [slow / fast for (slow, _), (fast, _) in pairs]
    floor = [spread([p50 for p50, _ in found[form]], 1) for form in case.floor]
    return [*cells, spread(ratios, 1), f"{RATIO_MIN}", *(floor or [""])]


def table(found: dict[str, Found]) -> str:
    """Return the results as a Markdown table."""
    heads = ["get"]
    for name in ("Mooncake", "ethermem"):
        heads += [name, "p50, us", "p99, us"]
    heads += ["ratio of p50", "asked, at least", f"{SOCKETS}, p50, us"]
    return markdown(heads, [row(case, found[case.name]) for case in CASES])


def main() -> int:
    """Measure, and print the table."""
    parser = Parser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mooncake", type=folder, required=True, metavar="FOLDER")
    parser.add_argument("--command", default="target/release/ethermem")
    parser.add_argument("--rounds", type=whole(1, 100), default=7)
    parser.add_argument("--gets", type=whole(100, 1_000_000), default=2000)
    parser.add_argument(
        "--awake",
        action="store_true",
        help="keep idle processors from halting: on a virtual machine, a sleeper wakes sooner",
    )
    options = parser.parse_args()
    programs = [options.mooncake / "bin" / name for name in ("python", "mooncake_master")]
    for program in (options.command, *map(str, programs)):
        if shutil.which(program) is None:
            raise BenchError(f"{program}: must be a program")
    address = f"127.0.0.1:{free_port()}"
    node = [options.command, "node", "--memory", "1GiB", "--listen", address, "--insecure"]
    with (
        awake() if options.awake else contextlib.nullcontext(),
        started(node, "listening|serving"),
        mooncake(options) as getter,
        ethermem.Pool.open(f"udp://{address}") as pool,
    ):
        print(table(measure(options, getter, Ours(pool))))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (BenchError, ethermem.EthermemError, WrongBytesError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
