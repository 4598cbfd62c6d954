"""The data that the applications work on: made from a seed, the same bytes on every machine."""

import random
from collections.abc import Iterator
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from .app import made_once

# Part of every file's name: raised when a generator changes, so that old data is not taken for new.
EDITION = 1
# Probabilities of R-MAT's quadrants, of 65536: those of the Graph500 and GAP benchmarks.
QUADRANTS = (int(0.57 * 65536), int(0.76 * 65536), int(0.95 * 65536))
EDGES_PER_VERTEX = 16
LINES_PER_ORDER = 4
WORDS_PER_LINE = 10


def splitmix64(values: Any) -> Any:  # noqa: ANN401 (an array of numpy, which may not be there)
    """Give a well-mixed 64-bit number for each 64-bit number."""
    import numpy as np  # noqa: PLC0415

    mixed = values.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _write_graph(scale: int, path: Path) -> None:
    import numpy as np  # noqa: PLC0415

    edges = EDGES_PER_VERTEX << scale
    ends = np.zeros((2, edges), dtype=np.uint32)
    numbers = np.arange(1, edges + 1, dtype=np.uint64)
    for level in range(scale):
        draw = splitmix64(numbers + np.uint64(level << 40)) >> np.uint64(48)
        a, b, c = QUADRANTS
        ends[0] = ends[0] * 2 + (draw >= b)
        ends[1] = ends[1] * 2 + (((draw >= a) & (draw < b)) | (draw >= c))
    # Vertices of many edges stand together; so that they do not, number them anew.
    renamed = np.argsort(splitmix64(np.arange(1, (1 << scale) + 1)), kind="stable")
    renamed.astype(np.uint32)[ends].T.tofile(path)


def graph(scale: int) -> Path:
    """Give an R-MAT graph of 2^scale vertices: pairs of 32-bit little-endian vertices."""
    return made_once(f"graph-{scale}-{EDITION}.u32", partial(_write_graph, scale))


def _rows(seed: int, rows: int) -> Iterator[tuple[int, random.Random]]:
    # Of `random`'s methods only random() is promised to give the same numbers in every version.
    source = random.Random(seed)
    return ((row, source) for row in range(rows))


def _below(source: random.Random, bound: int) -> int:
    return int(source.random() * bound)


def _write_orders(orders: int, path: Path) -> None:
    with path.open("w", encoding="ascii") as file:
        for order, source in _rows(1, orders):
            customer, day = _below(source, orders // 10), _below(source, 2400)
            file.write(f"{order},{customer},{day},{_below(source, 5)}\n")


def _write_lines(orders: int, path: Path) -> None:
    with path.open("w", encoding="ascii") as file:
        for line, source in _rows(2, orders * LINES_PER_ORDER):
            quantity, cents = 1 + _below(source, 50), 100 + _below(source, 100_000)
            percent, tax, day = _below(source, 11), _below(source, 9), _below(source, 2500)
            flag, status = "ANR"[_below(source, 3)], "FO"[_below(source, 2)]
            order = line // LINES_PER_ORDER
            file.write(f"{order},{quantity},{cents},{percent},{tax},{day},{flag},{status}\n")


def tables(orders: int) -> tuple[Path, Path]:
    """Give TPC-H's orders and line items, with the columns that the queries read, as CSV."""
    return (
        made_once(f"orders-{orders}-{EDITION}.csv", partial(_write_orders, orders)),
        made_once(f"lines-{orders}-{EDITION}.csv", partial(_write_lines, orders)),
    )


def _write_rankings(pages: int, path: Path) -> None:
    with path.open("w", encoding="ascii") as file:
        for page, source in _rows(3, pages):
            file.write(f"url{page},{_below(source, 1000)},{_below(source, 100)}\n")


def _write_visits(pages: int, path: Path) -> None:
    with path.open("w", encoding="ascii") as file:
        for _, source in _rows(4, pages * 10):
            address = ".".join(str(_below(source, bound)) for bound in (40, 256, 256, 256))
            page = int(source.random() ** 2 * pages)
            file.write(f"{address},url{page},{_below(source, 365)},{_below(source, 10_000)}\n")


def visits(pages: int) -> tuple[Path, Path]:
    """Give the Big Data Benchmark's rankings and visits, as CSV; revenue is in cents."""
    return (
        made_once(f"rankings-{pages}-{EDITION}.csv", partial(_write_rankings, pages)),
        made_once(f"visits-{pages}-{EDITION}.csv", partial(_write_visits, pages)),
    )


def zipf_weights(items: int, exponent: float) -> list[float]:
    """Give the running sums of the weights of items by Zipf's law."""
    return list(accumulate(rank**-exponent for rank in range(1, items + 1)))


def _write_text(words: int, path: Path) -> None:
    source = random.Random(5)
    weights = zipf_weights(200_000, 0.9)
    vocabulary = [f"w{number * 2_654_435_761 % 2**32:x}" for number in range(len(weights))]
    with path.open("w", encoding="ascii") as file:
        for _ in range(words // WORDS_PER_LINE):
            chosen = source.choices(vocabulary, cum_weights=weights, k=WORDS_PER_LINE)
            file.write(" ".join(chosen) + "\n")


def text(words: int) -> Path:
    """Give lines of words that are as unlike in number as those of a language."""
    return made_once(f"text-{words}-{EDITION}.txt", partial(_write_text, words))


def _write_records(records: int, path: Path) -> None:
    with path.open("w", encoding="ascii") as file:
        for record, source in _rows(6, records):
            key = f"{_below(source, 2**52):013x}"
            file.write(f"{key}{record:012d}{'abcdefgh'[record % 8] * 74}\n")


def records(number: int) -> Path:
    """Give records of 100 bytes in no order, as the sort benchmarks have them."""
    return made_once(f"records-{number}-{EDITION}.txt", partial(_write_records, number))
