"""Count words by map and reduce on dask.distributed: words.py SCHEDULER PIECES BYTES.

Each map task makes a piece of text, splits it, and sends its counts to the reducers by hash: the
shuffle goes over the workers' sockets. It prints the time, the words, and a digest of all counts.
"""

import hashlib
import random
import sys
import time
from collections import Counter

from distributed import Client, wait

REDUCERS = 4


def text(seed: int, length: int) -> str:
    """Make a piece of text with many different words."""
    own = random.Random(seed)
    words = [f"w{int(own.paretovariate(0.5)) % 200_000:x}" for _ in range(length // 6)]
    return " ".join(words)


def mapped(piece: str) -> list[dict[str, int]]:
    """Count the words of a piece, apart for each reducer."""
    parts: list[dict[str, int]] = [{} for _ in range(REDUCERS)]
    for word, count in Counter(piece.split()).items():
        parts[hashlib.blake2b(word.encode()).digest()[0] % REDUCERS][word] = count
    return parts


def part(parts: list[dict[str, int]], number: int) -> dict[str, int]:
    """Pick what one reducer gets of a piece."""
    return parts[number]


def reduced(parts: list[dict[str, int]]) -> dict[str, int]:
    """Add up the counts of all pieces."""
    total: Counter[str] = Counter()
    for some in parts:
        total.update(some)
    return dict(total)


def main() -> None:
    """Count, and print."""
    address, pieces, length = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with Client(address, timeout=30) as client:
        client.wait_for_workers(2, timeout=30)
        workers = sorted(client.scheduler_info()["workers"])
        # Maps and reductions of all workers: a fixed place for each task makes runs comparable.
        place = [workers[number % len(workers)] for number in range(max(pieces, REDUCERS))]
        texts = [
            client.submit(text, n, length, workers=place[n], pure=False) for n in range(pieces)
        ]
        wait(texts)
        start = time.perf_counter()
        maps = [client.submit(mapped, t, workers=place[n]) for n, t in enumerate(texts)]
        parts = [
            [client.submit(part, m, r, workers=place[n]) for n, m in enumerate(maps)]
            for r in range(REDUCERS)
        ]
        sums = [client.submit(reduced, p, workers=place[r]) for r, p in enumerate(parts)]
        counts = sorted(pair for some in client.gather(sums) for pair in some.items())
        took_s = time.perf_counter() - start
        digest = hashlib.sha256(repr(counts).encode()).hexdigest()
        print(f"{took_s:.4f} {sum(count for _, count in counts)} {digest}")


if __name__ == "__main__":
    main()
