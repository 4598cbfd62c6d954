"""What the benches reach of each module: `make rtl-coverage`, which runs them on models that count.

A point is a branch or a block of statements that Verilator counts; it is covered once one instance
of the module in one run executed it. With arguments, only these benches run. Proofs are not in it.
"""

import collections
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from flow import tools

RUNS = tools.OUT / "coverage"
RESULTS = tools.OUT / "coverage.json"
# A key and its value: \x01KEY\x02VALUE, as Verilator writes them.
FIELD = re.compile(r"\x01(\w+)\x02([^\x01']*)")
PLACE = ("f", "l", "n", "o")


def points(path):
    """The points of one run: their place in the sources, and how often they were executed."""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("C "):
            fields = dict(FIELD.findall(line))
            place = tuple(fields.get(key, "") for key in PLACE)
            yield place, int(line.rsplit(" ", 1)[1])


def merged(paths):
    """How often each point was executed, in all runs and instances."""
    counts = collections.Counter()
    for path in paths:
        for place, count in points(path):
            counts[place] += count
    return counts


def modules(counts):
    """For each module of rtl/ but those of benches: points, those covered, lines of the others."""
    found = {}
    for (file, line, *_), count in sorted(counts.items()):
        path = Path(file)
        if not path.is_relative_to(tools.RTL) or path.is_relative_to(tools.RTL / "tb"):
            continue
        row = found.setdefault(path.stem, {"points": 0, "covered": 0, "open_lines": []})
        row["points"] += 1
        row["covered"] += count > 0
        if count == 0:
            row["open_lines"].append(int(line))
    for row in found.values():
        row["open_lines"] = sorted(set(row["open_lines"]))
    return found


def table(found):
    """The modules as lines of text, the least covered first."""
    rows = sorted(found.items(), key=lambda item: item[1]["covered"] / item[1]["points"])
    lines = [f"{'module':28} {'points':>7} {'covered':>8} {'%':>7}  lines that nothing reached"]
    for name, row in rows:
        percent = 100 * row["covered"] / row["points"]
        numbers = " ".join(str(line) for line in row["open_lines"][:12])
        more = " ..." if len(row["open_lines"]) > 12 else ""
        lines.append(
            f"{name:28} {row['points']:7} {row['covered']:8} {percent:7.2f}  {numbers}{more}"
        )
    return lines


def main(*benches):
    """Runs the benches, prints the table and leaves it as JSON; gives the exit code."""
    shutil.rmtree(RUNS, ignore_errors=True)
    RUNS.mkdir(parents=True)
    paths = benches or (str(tools.RTL / "tb"),)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        str(len(os.sched_getaffinity(0))),
        *paths,
    ]
    ran = subprocess.run(command, env=os.environ | {"RTL_COVERAGE": str(RUNS)}, check=False)
    found = modules(merged(sorted(RUNS.glob("*.dat"))))
    if not found:
        print("error: no bench counted anything", file=sys.stderr)
        return 1
    RESULTS.write_text(json.dumps(found, indent=1), encoding="utf-8")
    print(*table(found), sep="\n")
    total, covered = (sum(row[key] for row in found.values()) for key in ("points", "covered"))
    print(f"{len(found)} modules, {covered} of {total} points, {100 * covered / total:.2f} %")
    return ran.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
