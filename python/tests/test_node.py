"""Python against `ethermem node`, a process of its own, with a key."""

import signal
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import ethermem
from ethermem import Pool

# (module (memory (export "memory") 1) (func (export "run") (result i32) CODE))
HEAD = bytes.fromhex(
    "0061736d01000000 01050160 00017f 03020100 0503010001"
    "0710 02 066d656d6f7279 0200 0372756e 0000".replace(" ", "")
)
SEVEN = HEAD + bytes.fromhex("0a06010400 41070b")
ENDLESS = HEAD + bytes.fromhex("0a0b010900 03400c000b 41000b")


class Node:
    """A node process, and its address."""

    def __init__(self, command: Path, folder: Path, listen: str = "127.0.0.1:0") -> None:
        self.folder = folder
        for name in ("a.key", "b.key"):
            if not (folder / name).exists():
                words = [str(command), "keygen", "--tenant", "5", "--out", name]
                subprocess.run(words, cwd=folder, check=True)
        (folder / "endless.wasm").write_bytes(ENDLESS)
        (folder / "node.toml").write_text(
            f'memory = "8MiB"\npage = "4KiB"\nlisten = "{listen}"\n'
            '[[tenant]]\nname = "a"\nkey_file = "a.key"\nmemory_max = "1MiB"\n'
            "offloads_max = 1\noffload_fuel_max = 1000000\n"
            '[offload.endless]\nfile = "endless.wasm"\n'
        )
        self.process = subprocess.Popen(
            [command, "node", "--config", "node.toml"],
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("listening on "), line
        self.address = line.removeprefix("listening on ").strip()

    def url(self, key: str = "a.key", timeout_ms: int = 2000) -> str:
        return f"udp://{self.address}?key={self.folder / key}&timeout_ms={timeout_ms}"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def node(command: Path, tmp_path: Path) -> Iterator[Node]:
    started = Node(command, tmp_path)
    yield started
    started.kill()


def test_bytes_words_and_locks(node: Node) -> None:
    with Pool.open(node.url()) as pool:
        thread = pool.thread()
        region = thread.alloc(3 * 4096).wait()
        data = bytes(range(256)) * 40
        region.write(7, data).wait()
        assert region.read(7, len(data)).wait() == data
        word = region.at(4096 * 2 + 3072)
        assert thread.fetch_add(word, 5).wait() == 0
        assert thread.compare_and_swap(word, 5, 9).wait() == 5
        assert thread.swap(word, 1).wait() == 9
        with pytest.raises(ethermem.MisalignedError):
            thread.fetch_add(word + 1, 1).wait()
        with pytest.raises(ethermem.UnmappedError):
            thread.read(region.at(4096 * 64), 8).wait()


def test_which_way_was_chosen_is_told(node: Node) -> None:
    with Pool.open(node.url().replace("udp://", "node://")) as pool:
        assert pool.choice is not None
        assert pool.choice.startswith(f"by udp://{node.address}; ")
    with Pool.open(node.url()) as pool:
        assert pool.choice is None


def test_a_lock_keeps_counts_of_two_pools_whole(node: Node) -> None:
    with Pool.open(node.url()) as pool:
        owner = pool.thread()
        region = owner.alloc(4096).wait()

        def count() -> None:
            thread = owner.fork()
            for _ in range(200):
                thread.lock(region.at(0)).wait()
                word = int.from_bytes(thread.read(region.at(8), 8).wait(), "little")
                thread.write(region.at(8), (word + 1).to_bytes(8, "little")).wait()
                thread.unlock(region.at(0)).wait()

        counting = [threading.Thread(target=count) for _ in range(2)]
        for thread in counting:
            thread.start()
        for thread in counting:
            thread.join()
        assert int.from_bytes(region.read(8, 8).wait(), "little") == 400


@pytest.mark.parametrize("way", ["read_into", "write_from"])
def test_who_waits_for_a_silent_node_lets_others_run(node: Node, way: str) -> None:
    with Pool.open(node.url(timeout_ms=4500)) as pool:
        region = pool.thread().alloc(4096).wait()
        region.write(0, bytes(64)).wait()
        node.process.send_signal(signal.SIGSTOP)
        ended: list[str] = []

        def wait() -> None:
            getattr(region, way)(0, bytearray(64))
            ended.append(way)

        waiting = threading.Thread(target=wait)
        waiting.start()
        # A call that kept the interpreter's lock would delay this line.
        assert ended == []
        node.process.send_signal(signal.SIGCONT)
        waiting.join()
        assert ended == [way], "the node answered in time"


def test_who_has_another_key_or_wants_more_is_refused(node: Node) -> None:
    with pytest.raises(ethermem.UnreachableError, match="the key is not one of its own"):
        Pool.open(node.url("b.key", timeout_ms=200))
    with Pool.open(node.url()) as pool, pytest.raises(ethermem.FullError):
        pool.thread().alloc(2 << 20).wait()


def test_operations_at_the_node(node: Node) -> None:
    with Pool.open(node.url()) as pool:
        thread = pool.thread()
        region = thread.alloc(4096).wait()
        region.write(0, struct.pack("<6Q", region.at(24), 1, 10, 0, 2, 20)).wait()
        found = thread.chase(
            region.address,
            (2).to_bytes(8, "little"),
            next_offset=0,
            key_offset=8,
            value_offset=16,
            value_bytes=8,
        ).wait()
        assert found == (region.at(24), (20).to_bytes(8, "little"))
        with pytest.raises(
            ethermem.OffloadStoppedError, match="out of fuel: must take at most 1000000"
        ):
            thread.offload("endless", region.address, b"").wait()
        region.write(0, SEVEN).wait()
        head = struct.pack("<QII", region.address, len(SEVEN), 0)
        thread.offload("load", region.address, head + b"seven").wait()
        with pytest.raises(ethermem.OffloadError, match="it returned 7") as raised:
            thread.offload("seven", region.address, b"").wait()
        assert type(raised.value) is ethermem.OffloadError
        with pytest.raises(ethermem.OffloadError, match="may bring 1 operations"):
            thread.offload("load", region.address, head + b"again").wait()


def test_a_node_that_ends_says_so_and_one_that_is_new_is_known(
    node: Node, command: Path, tmp_path: Path
) -> None:
    with Pool.open(node.url()) as pool:
        region = pool.thread().alloc(4096).wait()
        node.process.send_signal(signal.SIGTERM)
        until = time.monotonic() + 10
        # The node needs a moment to notice; until then processes remain.
        with pytest.raises(ethermem.EndingError, match="is about to end"):
            while time.monotonic() < until:
                pool.thread()
        assert region.read(0, 1).wait() == b"\0", "those that are there go on"
        node.process.kill()
        node.process.wait()
        again = Node(command, tmp_path, node.address)
        try:
            with pytest.raises(ethermem.RestartedError):
                region.read(0, 8).wait()
        finally:
            again.kill()
