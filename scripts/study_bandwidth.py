#!/usr/bin/env python3
"""Measure the memory bandwidth of real programs, and draw Figure 6 (b) of the OSDI'16 study.

    python3 scripts/study_bandwidth.py measure [--apps sqlite,sort] [--llc 2560KiB/20]
    python3 scripts/study_bandwidth.py check
    python3 scripts/study_bandwidth.py draw

`measure` appends a row for each program of workloads/apps that the data lack. Bytes are those that
the processor's memory controllers count, where `perf stat` reads them, and otherwise those of a
model of the caches (valgrind's tool callgrind). `check` counts the bytes of a program that copies a
known amount. `draw` needs matplotlib and scipy.
"""

import argparse
import csv
import json
import math
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import study_slowdowns
import study_waits
from study_slowdowns import NETWORKS

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "workloads" / "apps" / "bandwidth.csv"
TIMES = ["run_s", "quiet_s", "processor_s"]
COLUMNS = ["app", "source", "llc", "read_bytes", "written_bytes", *TIMES]
LINE_BYTES = 64
# A core's share of the last cache of Intel's E5-2670 v2, on which the study's EC2 instances ran.
LLC = "2560KiB/20"
FIRST = "32768,8,64"
# The run takes fifty to a hundred times as long in the model.
TIMEOUT_S = 3600
RUNS = 3
# Between looks at a program's threads, in seconds.
PAUSE_S = 0.02
# Counters of the memory controllers; both are in MiB.
COUNTERS = ["uncore_imc/cas_count_read/", "uncore_imc/cas_count_write/"]
MIB = 1 << 20
# Copies of this many bytes, far more than any last cache, and how often.
COPIED_BYTES = 64 * MIB
COPIES = 8
CHECK_ERROR_MAX = 0.05
# A correlation of exactly 1 has no interval.
NEARLY_ONE = 1 - 1e-12
HUNDRED = 100
# The variance of a correlation is over the points less three.
LEAST_POINTS = 3
COPY = f"""\
#include <stdio.h>
#include <stdlib.h>
enum {{ WORDS = {COPIED_BYTES} / 8, TURNS = {COPIES} }};
int main(void) {{
  volatile long *from = malloc(WORDS * 8L), *to = malloc(WORDS * 8L);
  for (long at = 0; at < WORDS; at++) from[at] = at;
  for (int turn = 0; turn < TURNS; turn++)
    for (long at = 0; at < WORDS; at++) to[at] = from[at] + turn;
  printf("%ld\\n", to[WORDS - 1]);
}}
"""


class StudyError(Exception):
    """What went wrong, in one line."""


def cache(text):
    """Parse the size and the ways of a cache, such as 2560KiB/20, as valgrind takes them."""
    found = re.fullmatch(r"(\d+)(KiB|MiB)/(\d+)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text}: must be size/ways, such as 2560KiB/20")
    size = int(found[1]) * {"KiB": 1 << 10, "MiB": MIB}[found[2]]
    ways = int(found[3])
    sets = size // (ways * LINE_BYTES) if ways else 0
    if not sets or sets & (sets - 1) or sets * ways * LINE_BYTES != size:
        raise argparse.ArgumentTypeError(f"{text}: sets must be a power of two; here {sets}")
    return f"{size},{ways},{LINE_BYTES}"


def missing_counter(command="perf"):
    """Return the first counter that this machine lacks and why, or None."""
    for event in COUNTERS:
        words = [command, "stat", "-a", "-x,", "-e", event, "--", "true"]
        try:
            ended = subprocess.run(words, capture_output=True, text=True, check=False)
        except OSError as error:
            return f"{command}: {error.strerror}"
        said = [*ended.stderr.strip().splitlines(), "no answer"]
        if ended.returncode != 0:
            why = next((line.strip("\\_ ") for line in said if "\\___" in line), said[0])
            return f"{event}: {why}"
        if "<not" in ended.stderr:
            return f"{event}: not supported"
    return None


def counted_bytes(text):
    """Return bytes read and written from what `perf stat -x,` wrote; sockets are added up."""
    found = dict.fromkeys(COUNTERS, 0.0)
    for line in text.splitlines():
        parts = line.split(",")
        event = next((name for name in COUNTERS if name in parts), None)
        if event:
            if parts[1] != "MiB":
                raise StudyError(f"perf: {line}: must be a number of MiB")
            found[event] += float(parts[0]) * MIB
    return tuple(round(found[name]) for name in COUNTERS)


def modelled_bytes(text):
    """Return bytes read from memory and written to it, from an output of callgrind."""
    lines = dict(line.partition(":")[::2] for line in text.splitlines() if ":" in line)
    try:
        events, totals = lines["events"].split(), map(int, lines["totals"].split())
        counts = dict(zip(events, totals, strict=False))
        # Of each miss of the last cache (IL, DL): all, and those whose victim was dirty.
        misses = sum(counts.get(name, 0) for name in ["ILmr", "DLmr", "DLmw"])
        dirty = sum(counts.get(name, 0) for name in ["ILdmr", "DLdmr", "DLdmw"])
    except (KeyError, ValueError) as error:
        raise StudyError(f"callgrind: no line of {error} in its output") from error
    return misses * LINE_BYTES, dirty * LINE_BYTES


def callgrind(llc, folder):
    """Return the words of the model, to be put before a program."""
    caches = [f"--I1={FIRST}", f"--D1={FIRST}", f"--LL={cache(llc)}"]
    # Valgrind lets a program set its limit of open files to this one only; memcached asks for 1024.
    words = ["prlimit", "--nofile=1024:", "valgrind", "--tool=callgrind"]
    words += ["--trace-children=yes", "--cache-sim=yes"]
    words += ["--simulate-wb=yes", "--smc-check=all-non-file", *caches]
    return [*words, f"--callgrind-out-file={folder}/%p.out", f"--log-file={folder}/%p.log", "--"]


def run_app(app, under):
    """Run an application under a command; it checks its answer."""
    words = [str(ROOT / "workloads" / "apps" / "run"), app, "--under", " ".join(under)]
    words += ["--timeout-s", str(TIMEOUT_S)]
    ended = subprocess.run(words, stdout=subprocess.DEVNULL, check=False)
    if ended.returncode != 0:
        raise StudyError(f"{app}: it failed under {under[0]}")


def threads(process):
    """Return the numbers of a process, and of all that it started, with their threads."""
    folder = Path(f"/proc/{process}/task")
    found = []
    try:
        for thread in folder.iterdir():
            found.append((process, thread.name))
            for child in (thread / "children").read_text().split():
                found += threads(int(child))
    except OSError:
        # It ended meanwhile.
        return found
    return found


def had(thread):
    """Return for how long a thread ran, and was ready and had no processor, in seconds; or None."""
    try:
        words = Path("/proc/{}/task/{}/schedstat".format(*thread)).read_text().split()
        return float(words[0]) / 1e9, float(words[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return None


def quiet(run_s, ran_s, ready_s):
    """Return the time that a run takes when no other program has the processors, as `emulate`."""
    busy = ran_s + ready_s
    return run_s - min(busy, run_s) * ready_s / busy if busy else run_s


def timed(path, words):
    """Run a program, write the time that it takes on a quiet machine, and return its exit code."""
    begun = time.monotonic()
    process = subprocess.Popen(words)
    seen = {}
    while process.poll() is None:
        for thread in threads(process.pid):
            seen[thread] = had(thread) or seen.get(thread)
        time.sleep(PAUSE_S)
    run_s = time.monotonic() - begun
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    sums = [sum(part) for part in zip(*filter(None, seen.values()), strict=True)] or [0, 0]
    row = {"run_s": run_s, "quiet_s": quiet(run_s, *sums)}
    row["processor_s"] = usage.ru_utime + usage.ru_stime
    Path(path).write_text(json.dumps(row))
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def times(app):
    """Return the run of the least time on a quiet machine, of several plain ones."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "times.json"
        for _ in range(RUNS):
            run_app(app, [sys.executable, str(Path(__file__).resolve()), "timed", str(path)])
            found.append(json.loads(path.read_text()))
    best = min(found, key=lambda one: one["quiet_s"])
    return {name: f"{seconds:.3f}" for name, seconds in best.items()}


def moved_bytes(llc, has_counters, run):
    """Return bytes read and written while `run`, which takes words to put before it, runs."""
    with tempfile.TemporaryDirectory() as folder:
        if has_counters:
            path = Path(folder) / "perf"
            run(["perf", "stat", "-a", "-x,", "-o", str(path), "-e", ",".join(COUNTERS), "--"])
            return counted_bytes(path.read_text())
        run(callgrind(llc, folder))
        parts = [modelled_bytes(path.read_text()) for path in Path(folder).glob("*.out")]
        if not parts:
            raise StudyError("valgrind: it wrote no counts")
        return tuple(map(sum, zip(*parts, strict=True)))


def has_counters():
    """Say whether the counters are there; if not, say which is missing."""
    missing = missing_counter()
    if missing:
        print(f"no counters ({missing}): bytes are those of the model", file=sys.stderr)
    return not missing


def write(path, rows):
    """Write the data, whole or not at all."""
    part = path.with_suffix(".part")
    with part.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    part.replace(path)


def measure(arguments):
    """Measure the programs that the data lack; or their times again, and keep the least."""
    path = arguments.data
    rows = []
    if path.exists():
        with path.open() as file:
            rows = list(csv.DictReader(file))
    if arguments.times:
        for app in arguments.apps:
            best = times(app)
            for row in rows:
                if row["app"] == app and float(best["quiet_s"]) < float(row["quiet_s"]):
                    row.update(best)
            write(path, rows)
            print(app, *best.values(), flush=True)
        return
    source = "counters" if has_counters() else "model"
    llc = "" if source == "counters" else arguments.llc
    done = {(row["app"], row["source"], row["llc"]) for row in rows}
    for app in arguments.apps:
        if (app, source, llc) in done:
            continue
        known = [row for row in rows if row["app"] == app]
        try:
            took = {name: known[0][name] for name in TIMES} if known else times(app)
            read, written = moved_bytes(
                llc, source == "counters", lambda under, app=app: run_app(app, under)
            )
        except StudyError as error:
            print(error, file=sys.stderr)
            continue
        row = {"app": app, "source": source, "llc": llc} | took
        rows.append(row | {"read_bytes": read, "written_bytes": written})
        write(path, rows)
        print(*rows[-1].values(), flush=True)


def check(arguments):
    """Count the bytes of a program that copies a known amount; they must be as known."""
    counters = has_counters()
    with tempfile.TemporaryDirectory() as folder:
        unit, program = Path(folder) / "copy.c", Path(folder) / "copy"
        unit.write_text(COPY)
        subprocess.run(["cc", "-O1", str(unit), "-o", str(program)], check=True)

        def run(under):
            subprocess.run([*under, str(program)], stdout=subprocess.DEVNULL, check=True)

        found = moved_bytes(arguments.llc, counters, run)
    # Each turn reads what it copies, fetches the lines that it stores to, and writes them back. So
    # does the first filling with its lines.
    known = ((2 * COPIES + 1) * COPIED_BYTES, (COPIES + 1) * COPIED_BYTES)
    good = True
    for what, ours, truth in zip(["read", "written"], found, known, strict=True):
        error = ours / truth - 1
        good = good and abs(error) <= CHECK_ERROR_MAX
        print(f"{what}: {ours} bytes, must be {truth} ({error:+.2%})")
    return 0 if good else 1


def correlation(points):
    """Return the correlation of pairs by Pearson and by rank (Spearman), each with its interval."""
    from scipy import stats  # noqa: PLC0415

    first, second = zip(*points, strict=True)
    count = len(points)
    found = {}
    for name, test in [("pearson", stats.pearsonr), ("rank", stats.spearmanr)]:
        r = float(test(first, second).statistic)
        # Fisher's transform; ranks have Bonett and Wright's larger variance.
        variance = (1 if name == "pearson" else 1 + r * r / 2) / (count - 3)
        at, half = math.atanh(min(max(r, -NEARLY_ONE), NEARLY_ONE)), 1.96 * math.sqrt(variance)
        found[name] = (r, math.tanh(at - half), math.tanh(at + half))
    return found


def load(path, llc, times):
    """Return the bandwidth in Gb/s by application: counters if there are, else of this cache.

    `times` are those of a quiet machine, by application, and count before the data's own.
    """
    found = {}
    with path.open() as file:
        for row in sorted(csv.DictReader(file), key=lambda row: row["source"], reverse=True):
            if row["source"] == "counters" or row["llc"] == llc:
                bits = 8 * (int(row["read_bytes"]) + int(row["written_bytes"]))
                seconds = times.get(row["app"], float(row["quiet_s"]))
                found[row["app"]] = bits / seconds / 1e9
    return found


def quiet_times(runs):
    """Return the least time of each application with all memory local, on a quiet machine."""
    everything = study_slowdowns.ALL, study_slowdowns.NONE
    found = {}
    for app, share, network in list(runs):
        if (share, network) == everything:
            rows = runs[app, share, network].values()
            found[app] = min(float(row["run_s"]) for row in rows if row["run_s"])
    return found


def say(number):
    """Format a number in three digits or more."""
    return f"{number:,.0f}" if number >= HUNDRED else f"{number:.3g}"


def draw(arguments):
    """Print bandwidths and correlations, and draw slowdowns against them."""
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("svg")
    from matplotlib import pyplot as plt  # noqa: PLC0415
    from matplotlib import ticker  # noqa: PLC0415

    mpl.rcParams["svg.hashsalt"] = "ethermem"
    runs = study_waits.load(arguments.waits)
    quiet = study_slowdowns.load(study_slowdowns.DATA)
    memory = load(arguments.data, arguments.llc, quiet_times(quiet))
    apps = [app for app in study_waits.measured(runs) if app in memory]
    if len(apps) <= LEAST_POINTS:
        raise StudyError(f"only {len(apps)} programs have bandwidth and slowdowns: too few")
    demands = {app: study_waits.demands(runs, quiet, app) for app in apps}
    against = {
        "swap bandwidth, Gb/s": {app: demands[app][0] for app in apps},
        "memory bandwidth, Gb/s": memory,
        "waits a second": {app: demands[app][1] for app in apps},
    }
    rows = [[app, *(say(values[app]) for values in against.values())] for app in apps]
    study_waits.table(["program", *against], rows)
    figure, grid = plt.subplots(
        len(against), len(NETWORKS), figsize=(12, 9), sharey="col", constrained_layout=True
    )
    rows = []
    for line, (what, values) in zip(grid, against.items(), strict=True):
        for axes, network in zip(line, NETWORKS, strict=True):
            losses = {app: study_waits.best(runs, quiet, app)[0][network] for app in apps}
            points = {app: (values[app], losses[app][0]) for app in apps if losses[app]}
            for index, (app, (at, mean)) in enumerate(points.items()):
                _, low, high = losses[app]
                bars = [[mean - low], [high - mean]] if low is not None else None
                marker = "os^"[index // 10 % 3]
                axes.errorbar([at], [mean], bars, fmt=marker, ms=4, capsize=2, label=app)
            name = f"{network[0]} us, {network[1]} Gb/s"
            found = correlation(list(points.values()))
            cells = [f"{r:.2f} ({low:.2f} to {high:.2f})" for r, low, high in found.values()]
            rows.append([what.partition(",")[0], name, *cells])
            axes.set_title(f"{name}: r = {found['pearson'][0]:.2f}")
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 3)))
            axes.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
            axes.xaxis.set_minor_formatter(ticker.NullFormatter())
            axes.set_xlabel(what)
            axes.set_ylabel("slowdown by waits")
    study_waits.table(["slowdown with", "network", "Pearson", "rank (Spearman)"], rows)
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", fontsize=8, ncols=6)
    figure.savefig(arguments.out / "study-bandwidth.svg", metadata={"Date": None})


def main():
    """Measure, check or draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="do", required=True)
    for name in ["measure", "check", "draw"]:
        command = commands.add_parser(name)
        command.add_argument("--llc", default=LLC, type=lambda text: cache(text) and text)
    commands.choices["measure"].add_argument(
        "--apps", type=lambda text: text.split(","), default=study_waits.APPS
    )
    commands.choices["measure"].add_argument(
        "--times", action="store_true", help="measure only the times again, and keep the least"
    )
    commands.choices["draw"].add_argument("--out", type=Path, default=ROOT / "docs" / "images")
    for name in ["measure", "draw"]:
        commands.choices[name].add_argument("--data", type=Path, default=DATA)
    commands.choices["draw"].add_argument("--waits", type=Path, default=study_waits.DATA)
    inner = commands.add_parser("timed")
    inner.add_argument("path")
    inner.add_argument("words", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    try:
        if arguments.do == "timed":
            return timed(arguments.path, arguments.words)
        if arguments.do == "check":
            return check(arguments)
        {"measure": measure, "draw": draw}[arguments.do](arguments)
    except StudyError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
