"""The limits of requests, as the command reports them."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Limit:
    """One limit, with its minimum and maximum."""

    limit: str
    least: int
    most: int
    unit: str
    what: str
    beyond: str

    def sizes(self) -> list[int]:
        """Return 0, 1, the limit, and the values just below and above it."""
        return sorted({0, 1, self.most - 1, self.most, self.most + 1})


def load(command: Path) -> dict[str, Limit]:
    """Return every limit by name."""
    words = [str(command), "limits", "--format", "json"]
    printed = subprocess.run(words, capture_output=True, check=True, text=True).stdout
    found = [Limit(**entry) for entry in json.loads(printed)]
    return {limit.limit: limit for limit in found}


def table(limits: dict[str, Limit]) -> list[str]:
    """Return the rows of the page `docs/reference/limits.md`."""
    return [
        f"| `{one.limit}` | {one.least:,} | {one.most:,} | {one.unit} | {one.what} | {one.beyond} |"
        for one in limits.values()
    ]
