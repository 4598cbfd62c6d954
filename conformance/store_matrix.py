"""The matrix of the key-value store: keys and values of every length, with either index walk."""

from collections.abc import Callable
from functools import partial

from conformance.drivers import Driver
from conformance.limits import Limit
from conformance.model import RefusedError, digest, pattern
from conformance.pool_matrix import Result, raise_

INDEXES = ("client", "node")
# Lengths at which the store's paths differ: a value within a request, an access of the node.
CUTS = (16 << 10, 1 << 20)


class StoreMatrix:
    """One driver on one store, beside a dictionary."""

    def __init__(
        self, driver: Driver, url: str, limits: dict[str, Limit], *, is_full: bool = False
    ) -> None:
        self.driver = driver
        self.limits = limits
        self.is_full = is_full
        self.result = Result()
        self.values: dict[bytes, bytes] = {}
        self.done(f"open {url}")
        # Two buckets: every second key is a neighbour, until the table grows.
        self.done("store 2")
        for index in INDEXES:
            self.done(f"client {index} {index}")

    def done(self, request: str) -> None:
        """Send a request that must succeed."""
        answer = self.driver.ask(request)
        assert answer.startswith("ok"), f"{request}: {answer}"

    def check(self, request: str, expect: Callable[[], str]) -> str:
        """Send a request, and compare the answer with the dictionary."""
        try:
            right = {expect()}
        except RefusedError as refused:
            right = {self.driver.kind(answer) for answer in refused.answers()}
        answer = self.driver.ask(request)
        self.result.cells += 1
        if answer not in right and not (self.is_full and answer == self.driver.kind("error Full")):
            self.result.wrong.append(f"{request}: {answer}, and not {' or '.join(sorted(right))}")
        assert not answer.startswith("dead "), "\n".join(self.result.wrong)
        return answer

    def check_lengths(self, key: bytes, value: bytes) -> None:
        """Refuse lengths over the limits."""
        if len(key) > self.limits["kv.key_bytes"].most:
            raise RefusedError("KeyTooLong")
        if len(value) > self.limits["kv.value_bytes"].most:
            raise RefusedError("ValueTooLong")

    def read(self, client: str, key: tuple[int, int]) -> None:
        """Read one key."""
        name = pattern(*key)

        def expect() -> str:
            self.check_lengths(name, b"")
            value = self.values.get(name)
            return "ok none" if value is None else digest(value)

        self.check(f"kv_read {client} {key[0]} {key[1]}", expect)

    def write(self, client: str, how: str, key: tuple[int, int], value: tuple[int, int]) -> None:
        """Put, create or update one key; an error leaves the previous value."""
        name, data = pattern(*key), pattern(*value)
        is_there = name in self.values
        changes = how == "put" or (how == "create") != is_there

        def expect() -> str:
            self.check_lengths(name, data)
            return "ok" if how == "put" else f"ok {int(changes)}"

        request = f"kv_{how} {client} {key[0]} {key[1]} {value[0]} {value[1]}"
        if self.check(request, expect).startswith("ok") and changes:
            self.values[name] = data
        self.read(client, key)

    def delete(self, client: str, key: tuple[int, int]) -> None:
        """Delete one key."""
        name = pattern(*key)

        def expect() -> str:
            self.check_lengths(name, b"")
            return f"ok {int(name in self.values)}"

        if self.check(f"kv_delete {client} {key[0]} {key[1]}", expect).startswith("ok"):
            self.values.pop(name, None)
        self.read(client, key)

    def keys(self) -> None:
        """Run every operation on keys of every length."""
        for size in self.limits["kv.key_bytes"].sizes():
            for client in INDEXES:
                for how in ("update", "create", "create", "update", "put"):
                    self.write(client, how, (1, size), (size % 100, 10))
                self.delete(client, (1, size))
                self.delete(client, (1, size))

    def value_sizes(self, most: int | None = None) -> list[int]:
        """Return lengths of values around the splits of the paths, and the limit."""
        around = {cut + by for cut in CUTS for by in (-100, -1, 0, 1)}
        limit = set(self.limits["kv.value_bytes"].sizes())
        return sorted(size for size in around | limit if most is None or size <= most)

    def neighbours(self, client: str) -> None:
        """Change, find and delete keys of one chain."""
        other = INDEXES[1 - INDEXES.index(client)]
        for seed in (2, 3):
            self.write(client, "put", (seed, 9), (seed, 20))
            self.write(other, "update", (seed, 9), (seed + 1, 30))
            self.read(client, (seed, 9))
        self.delete(client, (2, 9))

    def long_values(self, most: int | None = None) -> None:
        """Use values of every length, and their neighbours, with either walk."""
        for number, size in enumerate(self.value_sizes(most)):
            for client in INDEXES:
                key = (10, 12)
                self.write(client, "put", key, (number, size))
                self.neighbours(client)
                self.write(client, "update", key, (number + 1, size))
                self.neighbours(client)
                self.delete(client, key)

    def growth(self, keys: int, value_bytes: int) -> None:
        """Grow the table while a long value is in it."""
        self.write("client", "put", (20, 12), (1, value_bytes))
        for seed in range(keys):
            client = INDEXES[seed % 2]
            self.write(client, "create", (seed, 40 + seed // 251), (seed, 5))
        self.read("node", (20, 12))
        self.delete("node", (20, 12))
        for name in list(self.values)[::7]:
            self.read("client", (name[0], len(name)))

    def clear(self) -> None:
        """Delete everything, and find nothing."""
        self.check("kv_clear node", lambda: "ok")
        self.values.clear()
        self.read("client", (20, 12))
        self.write("client", "put", (20, 12), (1, 12))

    def refused(self) -> None:
        """Refuse a store of too few buckets, or of a number that is not a power of two."""
        for buckets in (0, 1, 3):
            kinds = {"c": ("BadArgument",), "python": ("InputError",)}
            right = kinds.get(self.driver.face, ("BadConfig",))
            self.check(f"store {buckets}", partial(raise_, RefusedError(*right)))
