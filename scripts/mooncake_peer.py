#!/usr/bin/env python3
"""One client of Mooncake's store, which bench_mooncake.py starts under Mooncake's own Python.

    mooncake_peer.py (hold | get) MASTER_ADDRESS

`hold` contributes the memory segment, and puts the objects there. `get` contributes none, so that
its gets cross a socket. Each line of standard input is a request in JSON; each answer is a line.
bench_mooncake.py measures its own gets with the same functions.
"""

import ctypes
import gc
import json
import os
import random
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

MIB = 1 << 20
SEGMENT_BYTES = 1024 * MIB
# The size in the examples of Mooncake's documentation.
LOCAL_BUFFER_BYTES = 128 * MIB
# Bytes at each end of an object that every get is checked by.
EDGE_BYTES = 8
# Shorter than the lease of the master's defaults, 10 s.
SESSION_S_MAX = 3.0
# The largest request of `put_batch`.
PUT_BYTES_MAX = 4 * MIB


class WrongBytesError(Exception):
    """A get returned other bytes than were stored."""


@dataclass(frozen=True)
class Objects:
    """Objects of one size, each with contents of its own."""

    size: int
    count: int

    def key(self, index: int) -> str:
        """Return the key of an object."""
        return f"object-{self.size}-{index}"

    @property
    def table(self) -> str:
        """Return the key of one object that holds all of them, one after the other."""
        return f"table-{self.size}"

    def contents(self, index: int) -> bytes:
        """Return the contents of an object: random, from its size and index."""
        return random.Random(self.size * self.count + index).randbytes(self.size)

    def edges(self) -> list[tuple[bytes, bytes]]:
        """Return the first and the last bytes of every object."""
        whole = (self.contents(index) for index in range(self.count))
        return [(value[:EDGE_BYTES], value[-EDGE_BYTES:]) for value in whole]

    def orders(self, gets: int, rows: int, seed: int) -> list[list[int]]:
        """Return the objects of each get, drawn at random, each once in a get."""
        drawn = random.Random(seed)
        return [drawn.sample(range(self.count), rows) for _ in range(gets)]


@dataclass(frozen=True)
class Form:
    """One way to get objects: how its arguments are made, and where the bytes are afterwards."""

    arguments: Callable[[list[int]], Sequence[Any]]
    call: Callable[..., Any]
    # None if the call returns the bytes.
    buffer: memoryview | None


class Gets(ABC):
    """The gets of one system, by each of its ways."""

    def __init__(self) -> None:
        self.forms: dict[tuple[str, Objects, int], Form] = {}
        self.edges: dict[Objects, list[tuple[bytes, bytes]]] = {}

    @abstractmethod
    def made(self, name: str, objects: Objects, rows: int) -> Form:
        """Return a new form of that name."""

    def form(self, *words: Any) -> Form:
        """Return a form, the same for the same words."""
        if words not in self.forms:
            self.forms[words] = self.made(*words)
        return self.forms[words]

    def check(self, name: str, objects: Objects, rows: int, gets: int, seed: int) -> None:
        """Get objects, and compare every byte."""
        form = self.form(name, objects, rows)
        for order in objects.orders(gets, rows, seed):
            result = form.call(*form.arguments(order))
            found = bytes(result if form.buffer is None else form.buffer)
            if found != b"".join(objects.contents(index) for index in order):
                raise WrongBytesError(f"{name} of {objects.size} B: other bytes, {result!r:.80}")

    def measure(self, name: str, objects: Objects, rows: int, gets: int, seed: int) -> list[int]:
        """Return the nanoseconds of each get, and check the ends of each object that it returned.

        The ends are cleared in a buffer before it is used again, so that old bytes are found.
        """
        form, size = self.form(name, objects, rows), objects.size
        if objects not in self.edges:
            self.edges[objects] = objects.edges()
        edges, orders = self.edges[objects], objects.orders(gets, rows, seed)
        clock, nothing, taken = time.perf_counter_ns, bytes(EDGE_BYTES), []
        gc.disable()
        for order in orders:
            arguments = form.arguments(order)
            began = clock()
            result = form.call(*arguments)
            taken.append(clock() - began)
            found = memoryview(result) if form.buffer is None else form.buffer
            for row, index in enumerate(order):
                first = slice(row * size, row * size + EDGE_BYTES)
                last = slice((row + 1) * size - EDGE_BYTES, (row + 1) * size)
                if (found[first], found[last]) != edges[index]:
                    raise WrongBytesError(f"{name} of {size} B: other bytes, {result!r:.80}")
                if form.buffer is not None:
                    found[first] = found[last] = nothing
        gc.enable()
        return taken


class Mooncake(Gets):
    """A client of the store."""

    def __init__(self, role: str, master: str) -> None:
        # Only here: the bench, which imports this file, has another Python.
        from mooncake.store import MooncakeDistributedStore  # noqa: PLC0415

        super().__init__()
        self.store = MooncakeDistributedStore()
        segment = SEGMENT_BYTES if role == "hold" else 0
        place = ("127.0.0.1", "P2PHANDSHAKE", segment, LOCAL_BUFFER_BYTES, "tcp", "", master)
        if code := self.store.setup(*place):
            raise OSError(f"setup of the client: error {code}")

    def put(self, objects: Objects) -> None:
        """Store objects."""
        batch = max(1, min(64, PUT_BYTES_MAX // objects.size))
        for start in range(0, objects.count, batch):
            indices = range(start, min(start + batch, objects.count))
            keys = [objects.key(index) for index in indices]
            if code := self.store.put_batch(keys, [objects.contents(index) for index in indices]):
                raise OSError(f"put of {objects.size} B: error {code}")
        contents = b"".join(objects.contents(index) for index in range(objects.count))
        if code := self.store.put(objects.table, contents):
            raise OSError(f"put of {len(contents)} B: error {code}")

    def where(self, objects: Objects) -> list[str]:
        """Return the address of this client, and of the client that has the first object."""
        (replica,) = self.store.get_replica_desc(objects.key(0))
        memory = replica.get_memory_descriptor().buffer_descriptor
        return [self.store.get_hostname(), memory.transport_endpoint]

    def made(self, name: str, objects: Objects, rows: int) -> Form:
        """Return a way to get objects, with a registered buffer where it takes one."""
        store, size = self.store, objects.size
        if name == "get":
            return Form(lambda order: (objects.key(order[0]),), store.get, None)
        memory = (ctypes.c_char * (size * rows))()
        at, buffer = ctypes.addressof(memory), memoryview(memory).cast("B")
        if code := store.register_buffer(at, size * rows):
            raise OSError(f"registration of a buffer: error {code}")
        if name == "get_into":
            return Form(lambda order: (objects.key(order[0]), at, size), store.get_into, buffer)
        places, sizes = [at + row * size for row in range(rows)], [size] * rows
        if name == "session":
            ranges = self.ranges(objects, places, sizes)
            return Form(ranges, store.batch_get_into_multi_buffer_ranges, buffer)
        if name == "get_into_ranges":
            starts = [[[row * size for row in range(rows)]]]

            def ranges_of_table(order: list[int]) -> tuple[list[Any], ...]:
                offsets = [[[index * size for index in order]]]
                return [at], [[objects.table]], starts, offsets, [[sizes]]

            return Form(ranges_of_table, store.get_into_ranges, buffer)

        def batch(order: list[int]) -> tuple[list[str], list[int], list[int]]:
            return [objects.key(index) for index in order], places, sizes

        return Form(batch, store.batch_get_into, buffer)

    def ranges(
        self, objects: Objects, places: list[int], sizes: list[int]
    ) -> Callable[[list[int]], tuple[Any, ...]]:
        """Return how a get from a session's object is asked for; it keeps the session fresh.

        Within a session, gets do not ask the master.
        """
        begun_s = -SESSION_S_MAX

        def arguments(order: list[int]) -> tuple[Any, ...]:
            nonlocal begun_s
            if time.monotonic() - begun_s > SESSION_S_MAX:
                (code,) = self.store.batch_get_session_start([objects.table])
                if code != 0:
                    raise OSError(f"start of a session: error {code}")
                begun_s = time.monotonic()
            offsets = [index * objects.size for index in order]
            return [objects.table], [places], [sizes], [offsets]

        return arguments

    def answer(self, do: str, size: int, count: int, words: dict[str, Any]) -> Any:
        """Do what a request says: a method of this class, and its arguments."""
        objects = Objects(size, count)
        if do == "put":
            return self.put(objects)
        if do == "where":
            return self.where(objects)
        return {"check": self.check, "measure": self.measure}[do](objects=objects, **words)


def main() -> int:
    """Answer requests until the input ends."""
    if sys.argv[1:2] not in (["hold"], ["get"]) or len(sys.argv[2:]) != 1:
        print("error: the arguments must be hold or get, and the master's address", file=sys.stderr)
        return 2
    # Whatever the library prints goes to standard error.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        peer = Mooncake(*sys.argv[1:])
        print("null", file=answers)
        for line in sys.stdin:
            print(json.dumps(peer.answer(**json.loads(line))), file=answers)
    except (ImportError, OSError, WrongBytesError) as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
