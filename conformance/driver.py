"""Executes the conformance matrix's requests on a pool, in Python: one request and answer per line.

The drivers in Rust (`crates/kv/examples/conformance.rs`) and C (`driver.c`) accept equal requests.
"""

import sys
import zlib
from collections.abc import Callable, Iterator

import ethermem
from ethermem import kv

# Longest pattern in bytes: longer than any value of the store.
CYCLE = bytes(range(251))


def pattern(seed: int, length: int) -> bytes:
    """Return the bytes derived from `seed`, which are written and later compared."""
    start = seed % len(CYCLE)
    return (CYCLE * ((start + length) // len(CYCLE) + 1))[start : start + length]


def digest(data: bytes | bytearray) -> str:
    """Return the number of bytes, and their CRC-32."""
    return f"{len(data)} {zlib.crc32(data)}"


class Driver:
    """A pool, and the objects created on it, by name."""

    def __init__(self) -> None:
        self.pool: ethermem.Pool | None = None
        self.threads: dict[str, ethermem.Thread] = {}
        self.regions: dict[str, ethermem.Region] = {}
        self.store: kv.Store | None = None
        self.clients: dict[str, kv.Client] = {}

    def place(self, words: Iterator[str]) -> int:
        """Return a place: a region's name and an offset, which may be outside of it."""
        return (self.regions[next(words)].address + int(next(words))) % (1 << 64)

    def places(self, words: Iterator[str]) -> list[tuple[int, int]]:
        """Return contiguous places: the first address, the length of each, their number."""
        first, length, count = self.place(words), int(next(words)), int(next(words))
        return [((first + index * length) % (1 << 64), length) for index in range(count)]

    def manage(self, name: str, words: Iterator[str]) -> str | None:
        """Create or end pools, threads, regions and stores."""
        if name == "open":
            self.pool = ethermem.Pool.open(next(words))
            compute, memory = self.pool.nodes
            return f"{compute} {memory}"
        assert self.pool is not None
        match name:
            case "thread":
                self.threads[next(words)] = self.pool.thread()
            case "fork":
                forked = self.threads[next(words)].fork()
                self.threads[next(words)] = forked
            case "alloc":
                thread, to = self.threads[next(words)], next(words)
                region = thread.alloc(int(next(words)), int(next(words))).wait()
                self.regions[to] = region
                return str(region.address)
            case "free":
                thread = self.threads[next(words)]
                self.regions[next(words)].by(thread).free().wait()
            case "share":
                thread = self.threads[next(words)]
                region = self.regions[next(words)].by(thread)
                region.share(self.threads[next(words)].process, int(next(words))).wait()
            case "store":
                self.store = kv.Store.create(self.pool, buckets=int(next(words))).wait()
            case "client":
                assert self.store is not None
                to, index = next(words), next(words)
                self.clients[to] = self.store.client("node" if index == "node" else "client")
            case _:
                return None
        return ""

    def of_client(self, operation: str, words: Iterator[str]) -> str:
        """Do one operation of a client of the store."""
        client = self.clients[next(words)]
        if operation == "clear":
            client.clear().wait()
            return ""
        key = pattern(int(next(words)), int(next(words)))
        if operation == "read":
            value = client.read(key).wait()
            return "none" if value is None else digest(value)
        if operation == "delete":
            return str(int(client.delete(key).wait()))
        value = pattern(int(next(words)), int(next(words)))
        if operation == "put":
            client.put(key, value).wait()
            return ""
        call = {"create": client.create, "update": client.update}[operation]
        return str(int(call(key, value).wait()))

    def access(self, name: str, words: Iterator[str]) -> str:
        """Do one operation of a thread."""
        thread = self.threads[next(words)]
        calls: dict[str, Callable[[ethermem.Thread, Iterator[str]], str]] = {
            "read": self.read,
            "poll": self.poll,
            "detach": self.detach,
            "read_into": self.read_into,
            "region_read": self.region_read,
            "region_write": self.region_write,
            "write": self.write,
            "write_from": self.write_from,
            "gather": self.gather,
            "gather_into": self.gather_into,
            "scatter": self.scatter,
            "test_and_set": self.test_and_set,
            "modify": self.modify,
            "offload": self.offload,
            "chase": self.chase,
            "filter": self.filter,
        }
        if call := calls.get(name):
            return call(thread, words)
        match name:
            case "cas":
                at, expected, desired = self.place(words), int(next(words)), int(next(words))
                return str(thread.compare_and_swap(at, expected, desired).wait())
            case "fetch_add":
                return str(thread.fetch_add(self.place(words), int(next(words))).wait())
            case "swap":
                return str(thread.swap(self.place(words), int(next(words))).wait())
            case "lock":
                thread.lock(self.place(words)).wait()
            case "unlock":
                thread.unlock(self.place(words)).wait()
            case "release":
                thread.release().wait()
            case "fence":
                thread.fence().wait()
            case "sleep":
                thread.sleep(int(next(words))).wait()
            case _:
                raise AssertionError(f"{name}: no request of the matrix")
        return ""

    def read(self, thread: ethermem.Thread, words: Iterator[str]) -> str:
        return digest(thread.read(self.place(words), int(next(words))).wait())

    def poll(self, thread: ethermem.Thread, words: Iterator[str]) -> str:
        pending = thread.read(self.place(words), int(next(words)))
        while not pending.poll():
            continue
        return digest(pending.wait())

    def detach(self, thread: ethermem.Thread, words: Iterator[str]) -> str:
        thread.read(self.place(words), int(next(words)))
        thread.release().wait()
        return ""

    def read_into(self, thread: ethermem.Thread, words: Iterator[str]) -> str:
        at, to = self.place(words), bytearray(int(next(words)))
        thread.read_into(at, to)
        return digest(to)

    def region_read(self, thread: ethermem.Thread, words: Iterator[str]) -> str:
        region = self.regions[next(words)].by(thread)
        return digest(region.read(int(next(words)), int(next(words))).wait())

    def data(self, words: Iterator[str]) -> bytes:
        length = int(next(words))
        return pattern(int(next(words)), length)

    def region_write(self, thread: ethermem.Thread, words: Iterator[str]) -> str:
        region, offset = self.regions[next(words)].by(thread), int(next(words))
        region.write(offset, self.data(words)).wait()
        return ""

    def write(self, thread: ethermem.Thread, words: Iterator[str]) -> str:
        thread.write(self.place(words), self.data(words)).wait()
        return ""

    def write_from(self, thread: ethermem.Thread, words: Iterator[str]) -> str:
        thread.write_from(self.place(words), self.data(words))
        return ""

    def gather(self, thread: ethermem.Thread, words: Iterator[str]) -> str:
        return digest(thread.gather(self.places(words)).wait())

    def gather_into(self, thread: ethermem.Thread, words: Iterator[str]) -> str:
        places = self.places(words)
        to = bytearray(sum(length for _, length in places))
        thread.gather_into(places, to)
        return digest(to)

    def scatter(self, thread: ethermem.Thread, words: Iterator[str]) -> str:
        places = self.places(words)
        data = pattern(int(next(words)), sum(length for _, length in places))
        parts = [
            (at, data[index * length : (index + 1) * length])
            for index, (at, length) in enumerate(places)
        ]
        thread.scatter(parts).wait()
        return ""

    def test_and_set(self, thread: ethermem.Thread, words: Iterator[str]) -> str:
        return str(int(thread.test_and_set(self.place(words)).wait()))

    def modify(self, thread: ethermem.Thread, words: Iterator[str]) -> str:
        at, operation, operand = self.place(words), next(words), int(next(words))
        return str(thread.modify(at, operation, operand).wait())  # type: ignore[arg-type]

    def offload(self, thread: ethermem.Thread, words: Iterator[str]) -> str:
        name, at = next(words), self.place(words)
        return digest(thread.offload(name, at, bytes(int(next(words)))).wait())

    def chase(self, thread: ethermem.Thread, words: Iterator[str]) -> str:
        start, key = self.place(words), bytes(int(next(words)))
        found = thread.chase(start, key, next_offset=0, key_offset=8, elements_max=1).wait()
        return "none" if found is None else f"found {len(found[1])}"

    def filter(self, thread: ethermem.Thread, words: Iterator[str]) -> str:
        start, records = self.place(words), int(next(words))
        most = (1 << 64) - 1
        found = thread.filter(
            start, record_bytes=8, records=records, comparison="less", operand=most
        )
        return digest(found.wait())

    def answer(self, line: str) -> str:
        """Execute the request of a line."""
        words = iter(line.split())
        name = next(words)
        try:
            if name.startswith("kv_"):
                done = self.of_client(name.removeprefix("kv_"), words)
            else:
                made = self.manage(name, words)
                done = self.access(name, words) if made is None else made
        except ethermem.EthermemError as error:
            return f"error {type(error).__name__} {error}"
        return f"ok {done}".rstrip()


def main() -> None:
    """Answer the lines of the standard input."""
    driver = Driver()
    for line in sys.stdin:
        print(driver.answer(line).replace("\n", " "), flush=True)


if __name__ == "__main__":
    main()
