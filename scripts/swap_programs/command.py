"""What the commands of the benches share: arguments, refusals, cells of a table."""

import argparse
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path


class BenchError(Exception):
    """What keeps a bench from a result, in one line."""


class Parser(argparse.ArgumentParser):
    """A parser whose refusal is one line."""

    def error(self, message):
        """Say what is wrong."""
        self.exit(2, f"error: {message}\n")


def whole(low: int, high: int) -> Callable[[str], int]:
    """Return a parser of whole numbers."""

    def parse(text: str) -> int:
        if not text.isdecimal() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text}: must be a whole number, {low} to {high}")
        return int(text)

    return parse


def folder(text: str) -> Path:
    """Parse the name of a folder that is there."""
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{text}: must be a folder")
    return Path(text)


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Return the median, the least and the most."""
    middle = statistics.median(values)
    return f"{middle:.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])
