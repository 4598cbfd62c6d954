#!/usr/bin/env python3
"""Measure programs with a part of their memory local: under the pager, and on the kernel's swap.

    python3 scripts/bench_swap_programs.py [--command target/release/ethermem] [--rounds 3]

The programs are those of workloads/apps, each of whose answers is checked. A run without a limit
gives the peak of private memory. Then, in an order that turns, each round runs the program without
a limit, in a memory cgroup with swap in zram (reading one page at a fault, and eight, which is the
kernel's default), and by `ethermem run --local` at the same share of that peak; with `--free` also
with `--placement free`, where the scheduler alone places program and pager. The kernel's own memory
for the program, which the cgroup's limit counts (page tables above all), is measured, too, and
given on top. Root; the cgroup and the zram device are made and removed.
"""

import argparse
import json
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
from pathlib import Path

from swap_programs import kernel
from swap_programs.command import markdown, spread

ROOT = Path(__file__).resolve().parent.parent
RUN = ROOT / "workloads" / "apps" / "run"
PROGRAMS = ["python-dict", "numpy-stencil", "xz", "sort", "gxx", "java-map", "redis"]
SHARES = [50, 25]
# The logarithm of the pages that the kernel reads at a fault.
CLUSTERS = {"zram, one page": 0, "zram, eight pages": 3}
PAGER = "ethermem run"
FREE = "ethermem run, placement free"
MIB = 1 << 20
ZRAM_BYTES = 4 << 30
# The kernel refuses a limit below what it holds already; this is what a shell takes.
LIMIT_LEAST = 4 * MIB


def run(name: str, under: list[str], timeout_s: float) -> float | str:
    """Run a program; return its seconds, or why there are none."""
    words = [RUN, name, "--under", shlex.join(under), "--timeout-s", str(timeout_s)]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    if "did not end in time" in ended.stderr:
        return f"over {timeout_s:.0f}"
    if by := re.search(r"was killed by (\w+)", ended.stderr):
        return f"killed by {by[1]}"
    # A server that is killed shows at its client.
    if "ConnectionResetError" in ended.stderr or "closed the connection" in ended.stderr:
        return "killed"
    if ended.returncode != 0:
        sys.exit(f"{name} under {under[0] if under else 'nothing'}: {ended.stderr.strip()}")
    said = dict(word.split("=") for word in ended.stdout.split())
    return float(said["measured_s"])


def peak(name: str, timeout_s: float) -> kernel.Peak:
    """Return what a program holds at most where nothing limits it."""
    # What is made once, and pages of files, are there before.
    run(name, [], timeout_s)
    with kernel.group() as group:
        with group.peak() as found:
            run(name, group.under(), timeout_s)
        return found[0]


def on_kernel(name: str, local: int, beside: int, cluster: int, timeout_s: float) -> float | str:
    """Run a program on the kernel's swap."""
    with kernel.zram(ZRAM_BYTES, cluster), kernel.group() as group:
        with group.kept_alive(max(local + beside, LIMIT_LEAST)) as helps:
            taken = run(name, group.under(), timeout_s)
        print(f"{name}: reclaim was helped {helps[0]} times", file=sys.stderr, flush=True)
        return taken


def places(options: argparse.Namespace, name: str, local: int, beside: int) -> dict:
    """Return how a program is run in each place."""
    limit_s = options.timeout_s
    pager = [options.command, "run", "--local", f"{local // MIB}MiB"]
    free = [*pager, "--placement", "free", "--"]
    return {
        "no limit": lambda: run(name, [], limit_s),
        **{
            place: lambda cluster=cluster: on_kernel(name, local, beside, cluster, limit_s)
            for place, cluster in CLUSTERS.items()
        },
        PAGER: lambda: run(name, [*pager, "--"], limit_s),
        **({FREE: lambda: run(name, free, limit_s)} if options.free else {}),
    }


def measure(options: argparse.Namespace, name: str, share: int, most: kernel.Peak) -> dict:
    """Return the seconds of every round, by place."""
    local = most.private * share // 100 // MIB * MIB
    acts = places(options, name, local, most.beside)
    names = list(acts)
    seconds: dict[str, list] = {place: [] for place in names}
    for number in range(options.rounds):
        turn = number % len(names)
        for place in names[turn:] + names[:turn]:
            taken = acts[place]()
            print(f"{name}, {share} %, {place}: {taken} s", file=sys.stderr, flush=True)
            seconds[place].append(taken)
    peaks = {"private": most.private, "beside": most.beside, "local": local}
    return {"program": name, "share": share, **peaks, "seconds": seconds}


def middle(values: list) -> float:
    """Return the median; a run that did not end, or not in time, counts as endless."""
    return statistics.median(float("inf") if isinstance(value, str) else value for value in values)


def cell(values: list) -> str:
    """Return the median, the least and the most; and what kept runs from their end, if any."""
    ended = [value for value in values if not isinstance(value, str)]
    failed = [value for value in values if isinstance(value, str)]
    if not ended:
        return failed[0]
    if failed:
        ends = f"{min(ended):.2f} to {max(ended):.2f}"
        return f"{ends}; {len(failed)} of {len(values)} {failed[0]}"
    return spread(ended)


def over(ours: float, peer: float) -> str:
    """Return a ratio, where both ended."""
    return "-" if float("inf") in (ours, peer) else f"{ours / peer:.2f}"


def table(results: list) -> str:
    """Return the results as a Markdown table."""
    names = list(results[0]["seconds"])
    heads = ["program", "peak, MiB", "local", *(f"{name}, s" for name in names)]
    heads += ["over the better zram", "over no limit"]
    rows = []
    for result in results:
        seconds = result["seconds"]
        cells = [result["program"], f"{result['private'] / MIB:.0f}", f"{result['share']} %"]
        cells += [cell(seconds[name]) for name in names]
        ours = middle(seconds[PAGER])
        zram, plain = min(middle(seconds[name]) for name in CLUSTERS), middle(seconds["no limit"])
        cells += [over(ours, zram), over(ours, plain)]
        rows.append(cells)
    return markdown(heads, rows)


def main() -> int:
    """Read the arguments, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--command", default="target/release/ethermem")
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=PROGRAMS)
    parser.add_argument("--shares", nargs="+", type=int, default=SHARES, help="percent local")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--timeout-s", type=float, default=300.0, help="a run takes at most that")
    parser.add_argument("--free", action="store_true", help="also without binding any thread")
    parser.add_argument("--json", type=Path, help="where to write all values")
    options = parser.parse_args()
    if lack := kernel.lacks():
        print(f"error: {lack}", file=sys.stderr)
        return 2
    found = shutil.which(options.command)
    if found is None:
        print(f"error: {options.command} is not there: `make build`", file=sys.stderr)
        return 2
    options.command = str(Path(found).absolute())
    listed = subprocess.run([RUN, "--list"], capture_output=True, text=True, check=True).stdout
    absent = {line.split()[0]: line for line in listed.splitlines() if "not installed" in line}
    # What was made is removed, also when the bench is ended from outside.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    results = []
    for name in options.programs:
        if name in absent:
            continue
        most = peak(name, options.timeout_s)
        for share in options.shares:
            results.append(measure(options, name, share, most))
            if options.json:
                options.json.write_text(json.dumps(results, indent=2))
    print(table(results))
    for name in options.programs:
        if name in absent:
            print(f"NOT MEASURED: {absent[name]}", file=sys.stderr)
    return 0 if results else 2


if __name__ == "__main__":
    sys.exit(main())
