"""The expected results of a pool's operations: a model of regions, permissions, words and a store.

For each operation it gives the correct answers, of which a driver must give one. Errors have their
Rust names.
"""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field

READ, WRITE, BOTH = 1, 2, 3
CYCLE = bytes(range(251))
WORD = 8
TOP = 1 << 64


def pattern(seed: int, length: int) -> bytes:
    """Return the bytes of `seed`, as the drivers make them."""
    start = seed % len(CYCLE)
    return (CYCLE * ((start + length) // len(CYCLE) + 1))[start : start + length]


def digest(data: bytes | bytearray) -> str:
    """Return the answer of a driver that has read these bytes."""
    return f"ok {len(data)} {zlib.crc32(data)}"


class RefusedError(Exception):
    """An operation that is refused, for one of these reasons."""

    def __init__(self, *kinds: str) -> None:
        super().__init__(*kinds)
        self.kinds = kinds

    def answers(self) -> set[str]:
        """Return a driver's possible answers."""
        return {f"error {kind}" for kind in self.kinds}


@dataclass
class Region:
    """Memory allocated as one: in whole pages if the pool has pages."""

    address: int
    asked: int
    data: bytearray
    owner: str
    may: dict[str, int] = field(default_factory=dict)

    def holds(self, address: int) -> bool:
        """Return whether an address is in it."""
        return self.address <= address < self.address + len(self.data)


class Model:
    """A pool with its contents."""

    def __init__(self, access_bytes_max: int, page_bytes: int | None, memory_nodes: int) -> None:
        self.most = access_bytes_max
        self.page_bytes = page_bytes
        self.memory_nodes = memory_nodes
        self.process_of: dict[str, str] = {}
        self.regions: dict[str, Region] = {}
        self.held: dict[int, str] = {}

    def made(self, thread: str, name: str, address: int, asked: int, may: int) -> None:
        """Record a region that was allocated."""
        page = self.page_bytes or 1
        process = self.process_of[thread]
        data = bytearray(-(-asked // page) * page)
        self.regions[name] = Region(address, asked, data, process, {process: may})

    def check_length(self, length: int) -> None:
        """Refuse lengths that no operation may have."""
        if length == 0:
            raise RefusedError("Empty")
        if length > self.most:
            raise RefusedError("TooLong")

    def region_at(self, process: str, address: int) -> Region | None:
        """Return the region with this address, among those that a process may see."""
        for region in self.regions.values():
            if region.holds(address) and region.may.get(process, 0):
                return region
        return None

    def access(
        self, thread: str, address: int, length: int, needed: int
    ) -> list[tuple[Region, int, int]]:
        """Return the parts of regions that an access touches: region, offset, length."""
        self.check_length(length)
        process, end = self.process_of[thread], address + length
        if end >= TOP:
            raise RefusedError("Unmapped")
        parts = []
        at = address
        while at < end:
            region = self.region_at(process, at)
            if region is None:
                raise RefusedError("Unmapped")
            offset = at - region.address
            here = min(end - at, len(region.data) - offset)
            if at + here < end and self.page_bytes is None:
                raise RefusedError("Unmapped")
            if region.may[process] & needed != needed:
                raise RefusedError("Permission")
            parts.append((region, offset, here))
            at += here
        return parts

    def read(self, thread: str, address: int, length: int) -> bytes:
        """Return the result of a read."""
        parts = self.access(thread, address, length, READ)
        return b"".join(bytes(region.data[at : at + n]) for region, at, n in parts)

    def write(self, thread: str, address: int, data: bytes) -> None:
        """Apply a write."""
        done = 0
        for region, at, length in self.access(thread, address, len(data), WRITE):
            region.data[at : at + length] = data[done : done + length]
            done += length

    def check_all(self, places: Iterable[tuple[int, int]]) -> None:
        """Refuse the lengths of several places."""
        total = 0
        for _, length in places:
            self.check_length(length)
            total += length
        self.check_length(total)

    def gather(self, thread: str, places: list[tuple[int, int]]) -> bytes:
        """Return the result of a gather; an error may name any refused place."""
        self.check_all(places)
        found, refused = [], []
        for address, length in places:
            try:
                found.append(self.read(thread, address, length))
            except RefusedError as error:
                refused.extend(error.kinds)
        if refused:
            raise RefusedError(*refused)
        return b"".join(found)

    def scatter(self, thread: str, places: list[tuple[int, int]], data: bytes) -> None:
        """Apply a scatter; allowed places are written, unless one place is on no node."""
        self.check_all(places)
        if any(address >> 48 >= self.memory_nodes for address, _ in places):
            raise RefusedError("Unmapped")
        done, refused = 0, []
        for address, length in places:
            try:
                self.write(thread, address, data[done : done + length])
            except RefusedError as error:
                refused.extend(error.kinds)
            done += length
        if refused:
            raise RefusedError(*refused)

    def word(self, thread: str, address: int) -> int:
        """Return the word that an atomic changes."""
        if address >> 48 >= self.memory_nodes:
            raise RefusedError("Unmapped")
        if address % WORD:
            raise RefusedError("Misaligned")
        [(region, at, _)] = self.access(thread, address, WORD, BOTH)
        return int.from_bytes(region.data[at : at + WORD], "little")

    def modify(self, thread: str, address: int, operation: str, operands: list[int]) -> int:
        """Apply an atomic, and return the previous word."""
        before = self.word(thread, address)
        after = {
            "add": lambda: (before + operands[0]) % TOP,
            "swap": lambda: operands[0],
            "and": lambda: before & operands[0],
            "or": lambda: before | operands[0],
            "xor": lambda: before ^ operands[0],
            "cas": lambda: operands[1] if before == operands[0] else before,
        }[operation]()
        self.write(thread, address, after.to_bytes(WORD, "little"))
        return before

    def lock(self, thread: str, address: int) -> None:
        """Acquire a lock that is free."""
        assert self.word(thread, address) == 0, "the matrix locks nothing that is held"
        self.held[address] = thread
        self.write(thread, address, b"\x01" + bytes(WORD - 1))

    def unlock(self, thread: str, address: int) -> None:
        """Release a lock."""
        self.word(thread, address)
        if self.held.get(address) != thread:
            raise RefusedError("NotHeld")
        del self.held[address]
        self.write(thread, address, bytes(WORD))

    def owned(self, thread: str, name: str) -> Region:
        """Return a region that this thread's process has allocated."""
        region = self.regions.get(name)
        if region is None or region.owner != self.process_of[thread]:
            raise RefusedError("Unmapped")
        return region
