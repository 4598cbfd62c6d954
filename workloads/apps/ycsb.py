"""YCSB's core workload against a server of keys and values, every answer of which is checked.

The driver is a client outside of the limited program: one connection, requests in trains as long
as `TRAIN`. What the server must hold is computed beside it, so that the last reading of all keys
is compared with what was written, not with a number that was noted once.
"""

import hashlib
import random
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from .app import AppError, digest
from .data import zipf_weights

VALUE_BYTES = 1000
TRAIN = 32
READ_SHARE = 0.5
# YCSB's skew of its zipfian distribution.
SKEW = 0.99
START_S_MAX = 60.0
BUFFER_BYTES = 1 << 18


class Dialect(Protocol):
    """How a server is spoken to."""

    def set(self, key: bytes, value: bytes) -> bytes:
        """Give the request that writes a value."""

    def get(self, key: bytes) -> bytes:
        """Give the request that reads a value."""

    def stored(self) -> bytes:
        """Give the answer to a write."""

    def found(self, key: bytes, value: bytes) -> bytes:
        """Give the answer to a read of a key that is there."""


@dataclass(frozen=True)
class Load:
    """How much is asked of the server."""

    keys: int
    operations: int


def connect(path: Path, alive: Iterator[bool]) -> socket.socket:
    """Connect to a server that is just starting, for as long as it lives."""
    begun = time.monotonic()
    while time.monotonic() - begun < START_S_MAX and next(alive):
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(path))
            return connection
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            time.sleep(0.02)
    raise AppError("the server did not start")


def key_of(number: int) -> bytes:
    """Give the name of a key, without order as YCSB's are."""
    return b"user%020d" % (number * 0x9E3779B97F4A7C15 % 2**64)


def value_of(number: int, version: int) -> bytes:
    """Give what a key holds after so many writes."""
    seed = hashlib.sha256(b"%d %d" % (number, version)).hexdigest().encode()
    return (seed * (VALUE_BYTES // len(seed) + 1))[:VALUE_BYTES]


class Driver:
    """One client and what it knows of the server."""

    def __init__(self, connection: socket.socket, dialect: Dialect, load: Load) -> None:
        self.connection = connection
        self.dialect = dialect
        self.load = load
        self.versions = [0] * load.keys

    def _receive(self, expected: bytes) -> None:
        got = bytearray()
        while len(got) < len(expected):
            piece = self.connection.recv(min(BUFFER_BYTES, len(expected) - len(got)))
            if not piece:
                raise AppError("the server closed the connection")
            got += piece
        if got != expected:
            at = next(i for i, (a, b) in enumerate(zip(got, expected, strict=True)) if a != b)
            said, meant = bytes(got[at : at + 40]), expected[at : at + 40]
            raise AppError(f"wrong answer of the server: {said!r} where {meant!r} was due")

    def _exchange(self, numbers: Sequence[int], writes: Sequence[bool]) -> None:
        requests, answers = [], []
        for number, write in zip(numbers, writes, strict=True):
            key = key_of(number)
            if write:
                self.versions[number] += 1
                requests.append(self.dialect.set(key, value_of(number, self.versions[number])))
                answers.append(self.dialect.stored())
            else:
                requests.append(self.dialect.get(key))
                answers.append(self.dialect.found(key, value_of(number, self.versions[number])))
        self.connection.sendall(b"".join(requests))
        self._receive(b"".join(answers))

    def _all(self, write: bool) -> None:
        for start in range(0, self.load.keys, TRAIN):
            numbers = range(start, min(start + TRAIN, self.load.keys))
            self._exchange(numbers, [write] * len(numbers))

    def run(self) -> tuple[float, str]:
        """Load, then the mix of reads and writes, which is timed, then read all that is there."""
        self._all(write=True)
        source = random.Random(7)
        weights = zipf_weights(self.load.keys, SKEW)
        keys = range(self.load.keys)
        begun = time.monotonic()
        for _ in range(self.load.operations // TRAIN):
            numbers = source.choices(keys, cum_weights=weights, k=TRAIN)
            self._exchange(numbers, [source.random() >= READ_SHARE for _ in numbers])
        measured_s = time.monotonic() - begun
        self._all(write=False)
        held = (value_of(number, version) for number, version in enumerate(self.versions))
        return measured_s, digest(held)
