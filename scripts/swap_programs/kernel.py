"""The kernel's own remote memory of one machine: a memory cgroup, and swap in compressed memory.

Both are made here and taken away again. Cgroups of either version are used.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

ZRAM = Path("/sys/class/zram-control")
SAMPLE_S = 0.005
# How often a group is asked whether it waits for memory, and what it gets.
HELP_S = 0.001
HELP_BYTES = 1 << 20
# A group whose last process has just ended may be busy for a moment.
REMOVE_S = 5.0
# Above every swap that the machine has, so that this one is used.
PRIORITY = "32000"


@dataclass(frozen=True)
class Peak:
    """Most private memory of a group, and most of the kernel's own for it, in bytes.

    The limit counts pages of files, too. The kernel drops those first, as it can read them again.
    """

    private: int
    beside: int


def lacks() -> str | None:
    """Say what this machine lacks."""
    if os.geteuid() != 0:
        return "a cgroup and a swap device need root"
    if not (ZRAM / "hot_add").exists():
        return "the kernel has no zram"
    return None if _memory_root() else "no cgroup of memory is mounted"


def _memory_root() -> Path | None:
    """Return the folder under which groups are made, of version 2 or 1."""
    for line in Path("/proc/mounts").read_text(encoding="ascii").splitlines():
        _, where, kind, how = line.split()[:4]
        controllers = Path(where) / "cgroup.controllers"
        if kind == "cgroup2" and controllers.exists() and "memory" in controllers.read_text():
            return Path(where)
        if kind == "cgroup" and "memory" in how.split(","):
            return Path(where)
    return None


class Group:
    """A memory cgroup of our own."""

    def __init__(self) -> None:
        root = _memory_root()
        if root is None:
            raise OSError("no cgroup of memory is mounted")
        self.newer = (root / "cgroup.controllers").exists()
        if self.newer:
            (root / "cgroup.subtree_control").write_text("+memory")
        self.path = root / f"ethermem-bench-{os.getpid()}"
        self.path.mkdir()

    def under(self) -> list[str]:
        """Return the command that puts a program into the group."""
        enter = f'echo $$ > {self.path}/cgroup.procs && exec "$@"'
        return ["sh", "-c", enter, "sh"]

    def limit(self, bytes_max: int) -> None:
        """Limit what the processes hold in memory; swap is not limited."""
        name = "memory.max" if self.newer else "memory.limit_in_bytes"
        (self.path / name).write_text(str(bytes_max))

    @contextmanager
    def kept_alive(self, bytes_max: int) -> Iterator[list[int]]:
        """Limit the group while the block runs; the list has how often it was helped after it.

        Reclaim of the kernel's first version gives up now and then although swap has room, and a
        program would be killed. Here it waits instead, until this gives it a mebibyte more for a
        moment. The second version has no such wait: there a program is killed.
        """
        self.limit(bytes_max)
        helps = [0]
        if self.newer:
            yield helps
            return
        oom = self.path / "memory.oom_control"
        oom.write_text("1")

        def help_it() -> None:
            if "under_oom 1" in oom.read_text():
                helps[0] += 1
                self.limit(bytes_max + HELP_BYTES)
                with suppress(OSError):
                    self.limit(bytes_max)

        with _each(HELP_S, help_it):
            yield helps

    def held(self) -> Peak:
        """Return what the group holds now."""
        stat = dict(line.split() for line in (self.path / "memory.stat").read_text().splitlines())
        private = int(stat["anon" if self.newer else "rss"])
        # Not what is left of the sum: statistics are up to two seconds old, and sums are not.
        old = self.path / "memory.kmem.usage_in_bytes"
        return Peak(private, int(stat["kernel"] if self.newer else old.read_text()))

    @contextmanager
    def peak(self) -> Iterator[list[Peak]]:
        """Sample the group while the block runs; the list has the peak after it."""
        found = [Peak(0, 0)]

        def sample() -> None:
            most, now = found[0], self.held()
            found[0] = Peak(max(most.private, now.private), max(most.beside, now.beside))

        with _each(SAMPLE_S, sample):
            yield found

    def remove(self) -> None:
        """Remove the group; what still runs in it is killed."""
        until = time.monotonic() + REMOVE_S
        while True:
            for process in (self.path / "cgroup.procs").read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(process), signal.SIGKILL)
            try:
                self.path.rmdir()
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)
            else:
                return


@contextmanager
def _each(pause_s: float, act: Callable[[], None]) -> Iterator[None]:
    """Act again and again, with a pause before each time, while the block runs."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(pause_s):
            act()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def group() -> Iterator[Group]:
    """Make a memory cgroup, and remove it after the block."""
    made = Group()
    try:
        yield made
    finally:
        made.remove()


@contextmanager
def zram_device(bytes_max: int) -> Iterator[Path]:
    """Make a zram device of our own, and remove it after the block."""
    number = (ZRAM / "hot_add").read_text().strip()
    try:
        Path(f"/sys/block/zram{number}/disksize").write_text(str(bytes_max))
        yield Path(f"/dev/zram{number}")
    finally:
        (ZRAM / "hot_remove").write_text(number)


@contextmanager
def whole_file(folder: Path, bytes_max: int) -> Iterator[Path]:
    """Make a file whose bytes are all allocated, and remove it after the block."""
    path = folder / f"ethermem-bench-swap-{os.getpid()}"
    file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        try:
            os.posix_fallocate(file, 0, bytes_max)
        finally:
            os.close(file)
        yield path
    finally:
        path.unlink()


@contextmanager
def swap_on(where: Path, page_cluster: int) -> Iterator[None]:
    """Swap to a device or a file while the block runs.

    `page_cluster` is the logarithm of the pages that the kernel reads at a fault.
    """
    cluster = Path("/proc/sys/vm/page-cluster")
    before = cluster.read_text()
    _quiet("mkswap", str(where))
    _quiet("swapon", "--priority", PRIORITY, str(where))
    try:
        cluster.write_text(str(page_cluster))
        yield
    finally:
        cluster.write_text(before)
        _quiet("swapoff", str(where))


@contextmanager
def zram(bytes_max: int, page_cluster: int) -> Iterator[None]:
    """Swap to a zram device of our own while the block runs, and remove it."""
    with zram_device(bytes_max) as device, swap_on(device, page_cluster):
        yield


@contextmanager
def swap_file(folder: Path, bytes_max: int, page_cluster: int) -> Iterator[None]:
    """Swap to a file of our own while the block runs, and remove it."""
    with whole_file(folder, bytes_max) as path, swap_on(path, page_cluster):
        yield


def _quiet(*command: str) -> None:
    """Run a command; what it says on standard error is the message of its failure."""
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise OSError(ended.stderr.strip() or f"{command[0]} ended with {ended.returncode}")
