"""A stencil, or a random gather, in numpy: exact in integers, so that every byte counts."""

import hashlib
import sys
import time

import numpy as np


def mix(values: np.ndarray) -> np.ndarray:
    """Mix 64-bit numbers in place."""
    values *= np.uint64(0x9E3779B97F4A7C15)
    values ^= values >> np.uint64(29)
    values *= np.uint64(0xBF58476D1CE4E5B9)
    values ^= values >> np.uint64(32)
    return values


def stencil(side: int, rounds: int) -> tuple[float, bytes]:
    """Add each cell's four neighbours and itself, modulo 2^32, over and over."""
    cells = np.empty((side, side), dtype=np.uint32)
    for row in range(side):
        cells[row] = mix(np.arange(row * side, (row + 1) * side, dtype=np.uint64))
    after = cells.copy()
    begun = time.monotonic()
    for _ in range(rounds):
        inner = after[1:-1, 1:-1]
        np.add(cells[:-2, 1:-1], cells[2:, 1:-1], out=inner)
        inner += cells[1:-1, :-2]
        inner += cells[1:-1, 2:]
        inner += cells[1:-1, 1:-1]
        cells, after = after, cells
    return time.monotonic() - begun, hashlib.sha256(cells.data.cast("B")).digest()


def gather(words: int, reads: int) -> tuple[float, bytes]:
    """Read a table at places without order, each batch's places set by the batch before."""
    batch = 1 << 14
    table = np.empty(words, dtype=np.uint64)
    for start in range(0, words, batch):
        table[start : start + batch] = mix(np.arange(start, start + batch, dtype=np.uint64))
    begun = time.monotonic()
    found = table[:batch].copy()
    for number in range(reads // batch):
        places = mix(found + np.uint64(number)) & np.uint64(words - 1)
        found ^= table[places]
        table[places[: batch // 8]] ^= np.uint64(number)
    measured_s = time.monotonic() - begun
    sha = hashlib.sha256(found.data)
    sha.update(table.data)
    return measured_s, sha.digest()


if __name__ == "__main__":
    kind, first, second = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    took_s, answer = {"stencil": stencil, "gather": gather}[kind](first, second)
    print(f"answer={answer.hex()[:32]} measured_s={took_s:.6f}")
