#!/usr/bin/env python3
"""Print how many mutants the tests caught, by file, and which ones they missed.

    python3 scripts/mutants_report.py [FOLDER]

FOLDER is where `mutants.py` left its outcomes.
"""

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CAUGHT = ("caught", "timeout")


def last_outcomes(folder):
    """Return the last outcome of each mutant."""
    lines = (folder / "outcomes.jsonl").read_text(encoding="utf-8").splitlines()
    return {entry["name"]: entry for entry in map(json.loads, lines)}


def row(name, outcomes):
    """Return a row of the table."""
    counted = Counter(entry["outcome"] in CAUGHT for entry in outcomes)
    rate = 100 * counted[True] / len(outcomes)
    return f"| {name} | {len(outcomes)} | {counted[True]} | {rate:.1f} % |"


def main():
    """Print the tables and the list."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "target" / "mutants"
    outcomes = last_outcomes(folder)
    by_crate, by_file = defaultdict(list), defaultdict(list)
    for entry in outcomes.values():
        crate, _, file = entry["file"].removeprefix("crates/").partition("/src/")
        by_crate[crate].append(entry)
        by_file[crate, file].append(entry)
    for title, groups in (("crate", by_crate), ("file", by_file)):
        print(f"| {title} | mutants | caught | rate |\n|---|---|---|---|")
        for name, entries in groups.items():
            print(row(f"`{name if title == 'crate' else '/'.join(name)}`", entries))
        print()
    print(row("all", list(outcomes.values())), "\n")
    for entry in sorted(outcomes.values(), key=lambda one: one["name"]):
        if entry["outcome"] not in CAUGHT:
            print(f"{entry['outcome']}: {entry['name']}")


if __name__ == "__main__":
    main()
