"""The matrix of a pool's operations: requests, states, and expected results."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from conformance.drivers import Driver
from conformance.limits import Limit
from conformance.model import BOTH, READ, TOP, WORD, WRITE, Model, RefusedError, digest, pattern

CONDITIONS = ("alone", "beside a full neighbour", "while it grows", "memory full")
# Largest number of bytes that a cell moves: longer requests are tests of limits, and are refused.
MOVED_BYTES_MAX = 64 << 20
BIG = 4 << 20
# Lengths at which transports split, by layer: a word, a page, a datagram, a message.
CUTS = (8, 64, 4096, 64_000, 65_536, 1 << 20)
# Memory that a full neighbour leaves to others.
ROOM = 48 << 20
SMALLEST = 4096


@dataclass
class Result:
    """The number of cells, and the cells with a wrong answer."""

    cells: int = 0
    wrong: list[str] = field(default_factory=list)


class Matrix:
    """One driver on one pool in one condition, beside the model of its answers."""

    def __init__(
        self,
        driver: Driver,
        url: str,
        page_bytes: int | None,
        limits: dict[str, Limit],
        cuts: tuple[int, ...] = CUTS,
        *,
        is_slow: bool = False,
    ) -> None:
        self.driver = driver
        self.limits = limits
        self.cuts = cuts
        self.is_slow = is_slow
        self.result = Result()
        opened = driver.ask(f"open {url}")
        assert opened.startswith("ok "), f"{url}: {opened}"
        memory_nodes = int(opened.split()[2])
        self.model = Model(limits["pool.access_bytes"].most, page_bytes, memory_nodes)
        self.address: dict[str, int] = {}
        self.grown = 0

    def check(
        self,
        request: str,
        expect: Callable[..., str],
        *words: object,
        may: tuple[str, ...] = (),
        **named: object,
    ) -> str:
        """Send a request, and compare the answer with `expect`; those in `may` are right, too."""
        try:
            right = {expect(*words, **named)}
        except RefusedError as refused:
            right = refused.answers()
        right = {self.driver.kind(answer) for answer in right} | set(may)
        answer = self.driver.ask(request)
        self.result.cells += 1
        if answer not in right:
            self.result.wrong.append(f"{request}: {answer}, and not {' or '.join(sorted(right))}")
        assert not answer.startswith("dead "), "\n".join(self.result.wrong)
        return answer

    def done(self, request: str) -> str:
        """Send a request that must succeed."""
        answer = self.driver.ask(request)
        assert answer.startswith("ok"), f"{request}: {answer}"
        return answer

    def thread(self, name: str, of: str | None = None) -> None:
        """Make a thread, of a new process or of another thread's."""
        self.done(f"thread {name}" if of is None else f"fork {of} {name}")
        self.model.process_of[name] = name if of is None else self.model.process_of[of]

    def alloc(self, thread: str, name: str, length: int, may: int = BOTH) -> bool:
        """Allocate, and return whether there was room."""
        answer = self.driver.ask(f"alloc {thread} {name} {length} {may}")
        if answer.startswith("ok "):
            self.address[name] = int(answer.split()[1])
            self.model.made(thread, name, self.address[name], length, may)
            return True
        assert answer == self.driver.kind("error Full"), f"alloc of {length}: {answer}"
        return False

    def fill(self, thread: str, name: str, first: int) -> int:
        """Allocate until no memory is left; return the number of bytes."""
        length, number, taken = first, 0, 0
        least = self.model.page_bytes or 1
        while length >= least:
            if self.alloc(thread, f"{name}{number}", length):
                number += 1
                taken += length
            else:
                length //= 2
        return taken

    def prepare(self, condition: str) -> None:
        """Bring the pool into a condition, with the regions that the cells use."""
        for name in ("a", "b", "n"):
            self.thread(name)
        self.thread("a2", of="a")
        for name, thread, length, may in (
            ("big", "a", BIG, BOTH),
            ("page", "a", 4096, BOTH),
            ("odd", "a", 5000, BOTH),
            ("short", "a", 100, BOTH),
            ("ro", "a", 4096, READ),
            ("wo", "a", 4096, WRITE),
            ("gone", "a", 4096, BOTH),
            ("other", "b", 4096, BOTH),
            ("shared", "b", 4096, BOTH),
        ):
            assert self.alloc(thread, name, length, may), name
        self.done("free a gone")
        del self.model.regions["gone"]
        self.done("share b shared a 1")
        self.model.regions["shared"].may["a"] = READ
        if condition == "beside a full neighbour":
            assert self.alloc("a", "room", ROOM)
            self.fill("n", "n", 1 << 30)
            self.done("free a room")
            del self.model.regions["room"]
        elif condition == "memory full":
            self.fill("a", "f", 1 << 30)

    def grow(self) -> None:
        """Let a neighbour allocate, write, and free its region of four turns before."""
        self.grown += 1
        name = f"g{self.grown}"
        if self.alloc("n", name, 3000 * (self.grown % 50 + 1)):
            self.done(f"write n {name} 0 64 {self.grown}")
            self.model.write("n", self.address[name], pattern(self.grown, 64))
        if (old := f"g{self.grown - 4}") in self.model.regions:
            self.done(f"free n {old}")
            del self.model.regions[old]

    def at(self, region: str, offset: int) -> int:
        """Return the address of a place."""
        return (self.address[region] + offset) % TOP

    def places(self) -> Iterator[tuple[str, int]]:
        """Yield places of every sort: inside, at ends, of others, freed, nowhere."""
        yield from (("page", 0), ("big", 64), ("odd", 4999), ("short", 96), ("page", 4088))
        yield from (("ro", 0), ("wo", 8), ("other", 0), ("shared", 16), ("gone", 0), ("page", 3))
        for absolute in (0, 8, TOP - 8, TOP - 1, self.model.memory_nodes << 48):
            yield "page", (absolute - self.address["page"]) % TOP

    def sizes(self) -> list[int]:
        """Return lengths around every split of the transports and the limit of an access."""
        around = {cut + by for cut in self.cuts for by in (-1, 0, 1)}
        limit = self.limits["pool.access_bytes"]
        # Parts of long, refused requests are simulated, too.
        far = {limit.most - 1, limit.most} if self.is_slow else set()
        return sorted(around | set(limit.sizes()) - far)

    def reads(self) -> None:
        """Request reads of every length, and of every place."""
        names = ["read", "poll", "read_into", "region_read"]
        if self.driver.face == "c":
            names.remove("region_read")
        for name in names:
            for size in self.sizes():
                # A buffer of the caller is as long as the request.
                if name == "read_into" and size > MOVED_BYTES_MAX:
                    continue
                at = self.at("big", 5)
                inside = name != "region_read" or size + 5 <= BIG
                self.check(f"{name} a big 5 {size}", self.seen, at, size, inside=inside)
            for region, offset in self.places():
                if name == "region_read":
                    continue
                at = self.at(region, offset)
                self.check(f"{name} a {region} {offset} 8", self.seen, at, 8)
        self.check("detach a big 0 4096", lambda: "ok")

    def seen(self, at: int, size: int, *, inside: bool = True) -> str:
        """Return the result of a read; a region first refuses what is outside of it."""
        if not inside:
            raise RefusedError("Unmapped")
        return digest(self.model.read("a", at, size))

    def writes(self) -> None:
        """Request writes of every length that can be sent, and to every place."""
        names = ["write", "write_from", "region_write"]
        if self.driver.face == "c":
            names.remove("region_write")
        seed = 0
        for name in names:
            for size in self.sizes():
                if size > MOVED_BYTES_MAX:
                    continue
                seed += 1
                at, data = self.at("big", 3), pattern(seed, size)
                self.check(f"{name} a big 3 {size} {seed}", self.written, at, data)
                # The surrounding bytes are checked, too; all bytes at the end.
                around = min(size + 64, BIG)
                self.check(f"read a big 0 {around}", self.seen, self.at("big", 0), around)
            for region, offset in self.places():
                if name == "region_write":
                    continue
                seed += 1
                at, data = self.at(region, offset), pattern(seed, 8)
                self.check(f"{name} a {region} {offset} 8 {seed}", self.written, at, data)

    def written(self, at: int, data: bytes) -> str:
        """Apply a write to the model."""
        self.model.write("a", at, data)
        return "ok"

    def gathers(self) -> None:
        """Request several places at once: as many as fit a datagram, one more, and none."""
        for name in ("gather", "gather_into"):
            for count in (0, 1, 2, 31, 32, 33, 128, 1000):
                for size in (1, 8, 1000):
                    at = self.at("big", 1)
                    parts = [((at + index * size) % TOP, size) for index in range(count)]
                    self.check(
                        f"{name} a big 1 {size} {count}",
                        self.gathered,
                        parts,
                    )
            for region, offset in self.places():
                at = self.at(region, offset)
                parts = [(at, 8), ((at + 8) % TOP, 8)]
                self.check(
                    f"{name} a {region} {offset} 8 2",
                    self.gathered,
                    parts,
                )
        for count in (0, 1, 2, 32, 33, 500):
            at, data = self.at("big", 7), pattern(count, 24 * count)
            parts = [((at + index * 24) % TOP, 24) for index in range(count)]
            self.check(f"scatter a big 7 24 {count} {count}", self.scattered, parts, data)
            self.check("read a big 0 16384", self.seen, self.at("big", 0), 16384)

    def gathered(self, parts: list[tuple[int, int]]) -> str:
        """Return the result of a gather."""
        return digest(self.model.gather("a", parts))

    def scattered(self, parts: list[tuple[int, int]], data: bytes) -> str:
        """Apply a scatter to the model."""
        self.model.scatter("a", parts, data)
        return "ok"

    def words(self) -> None:
        """Request atomics and locks at every place, with operands at the ends of a word's range."""
        operands = (0, 1, TOP - 1, 1 << 63)
        for region, offset in [*self.places(), ("page", 16)]:
            at = self.at(region, offset)
            for operand in operands:
                for request, operation, words in (
                    ("fetch_add", "add", [operand]),
                    ("swap", "swap", [operand]),
                    ("cas", "cas", [operand, 7]),
                    *((f"modify {name}", name, [operand]) for name in ("and", "or", "xor")),
                ):
                    name, _, which = request.partition(" ")
                    rest = " ".join(map(str, ([which] if which else []) + words))
                    self.check(
                        f"{name} a {region} {offset} {rest}",
                        self.modified,
                        at,
                        operation,
                        words,
                    )
            self.check(f"swap a {region} {offset} 0", self.set_word, at, 0)
            self.check(f"test_and_set a {region} {offset}", self.test_and_set, at)
            self.check(f"test_and_set a {region} {offset}", self.test_and_set, at)
            self.check(f"unlock a2 {region} {offset}", self.locked, "unlock", "a2", at)
            self.check(f"swap a {region} {offset} 0", self.set_word, at, 0)
            self.check(f"lock a {region} {offset}", self.locked, "lock", "a", at)
            self.check(f"unlock a2 {region} {offset}", self.locked, "unlock", "a2", at)
            self.check(f"unlock a {region} {offset}", self.locked, "unlock", "a", at)

    def modified(self, at: int, operation: str, words: list[int]) -> str:
        """Apply an atomic to the model."""
        return f"ok {self.model.modify('a', at, operation, words)}"

    def set_word(self, at: int, word: int) -> str:
        """Apply a swap to the model."""
        return f"ok {self.model.modify('a', at, 'swap', [word])}"

    def test_and_set(self, at: int) -> str:
        """Set bit 0 of a word of the model."""
        return f"ok {self.model.modify('a', at, 'or', [1]) & 1}"

    def locked(self, what: str, thread: str, at: int) -> str:
        """Acquire or release a lock of the model."""
        getattr(self.model, what)(thread, at)
        return "ok"

    def allocations(self, condition: str) -> None:
        """Request regions of every length, share them, free them, and find them gone."""
        for number, size in enumerate(self.sizes()):
            name = f"new{number}"
            request = f"alloc a {name} {size} 3"
            try:
                self.model.check_length(size)
            except RefusedError as refused:
                self.check(request, raise_, refused)
                continue
            if condition == "memory full" or size > ROOM * 16:
                self.check(request, raise_, RefusedError("Full"))
                continue
            answer = self.driver.ask(request)
            self.result.cells += 1
            full = answer == self.driver.kind("error Full") and size > SMALLEST
            if not answer.startswith("ok ") and not full:
                self.result.wrong.append(f"{request}: {answer}")
            if not answer.startswith("ok "):
                continue
            self.address[name] = int(answer.split()[1])
            self.model.made("a", name, self.address[name], size, BOTH)
            at = self.at(name, size - 1)
            self.check(f"read a {name} {size - 1} 1", self.seen, at, 1)
            self.check(f"read b {name} {size - 1} 1", raise_, RefusedError("Unmapped"))
            self.check(f"free b {name}", raise_, RefusedError("Unmapped"))
            self.check(f"share b {name} n 1", raise_, RefusedError("Unmapped"))
            self.check(f"share a {name} b 3", lambda: "ok")
            self.check(f"write b {name} 0 1 9", lambda: "ok")
            self.check(f"free a {name}", lambda: "ok")
            del self.model.regions[name]
            self.check(f"read a {name} {size - 1} 1", self.seen, at, 1)

    def others(self) -> None:
        """Request operations that order, wait, or run at the memory node."""
        for thread in ("a", "a2", "b"):
            for request in (f"release {thread}", f"fence {thread}"):
                self.check(request, lambda: "ok")
        for time_ps in (0, 1, 1_000_000):
            self.check(f"sleep a {time_ps}", lambda: "ok")
        self.check("swap a page 0 0", self.set_word, self.at("page", 0), 0)
        for records in (0, 1, 16, 512):
            size = 8 * records
            answers = ("ok 0 0", self.driver.kind("error Offload"))
            may = answers if records == 0 else ()
            self.check(f"filter a page 0 {records}", self.kept, size, may=may)
        self.check("filter a gone 0 4", raise_, RefusedError("Unmapped"))
        most = self.limits["pool.offload_bytes"]
        for size in (*most.sizes(), 4, 100):
            kinds = ("Offload", "TooLong") if size > most.most else ("Offload",)
            self.check(f"offload a chase page 0 {size}", raise_, RefusedError(*kinds))
        self.check(
            "offload a no-such-thing page 0 8",
            raise_,
            RefusedError("NoSuchOffload", "Offload", "Refused"),
        )

    def kept(self, size: int) -> str:
        """Return the filter's result: every word that is not the largest."""
        data = self.model.read("a", self.at("page", 0), size)
        words = [data[at : at + WORD] for at in range(0, size, WORD)]
        return digest(b"".join(word for word in words if word != b"\xff" * WORD))

    def end(self) -> None:
        """Check that everything equals the model, and that the pool goes on."""
        for name, region in self.model.regions.items():
            if region.owner != "n" and region.may[region.owner] & READ and len(region.data) <= BIG:
                request = f"read {region.owner} {name} 0 {len(region.data)}"
                self.check(request, digest, region.data)

    def run(self, condition: str) -> Result:
        """Run every request in one condition."""
        self.prepare(condition)
        parts = (self.reads, self.writes, self.gathers, self.words)
        for part in (*parts, lambda: self.allocations(condition), self.others):
            if condition == "while it grows":
                for _ in range(20):
                    self.grow()
            part()
        self.end()
        return self.result


def raise_(error: RefusedError) -> str:
    """Raise an exception, which a lambda cannot."""
    raise error
