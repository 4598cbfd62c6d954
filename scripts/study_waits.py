#!/usr/bin/env python3
"""Class twelve real programs, at a quarter of their memory local, by waits and by the clock.

    python3 scripts/study_waits.py measure [--apps sqlite,sort] [--repeats 3] [--repeats-max 12]
    python3 scripts/study_waits.py show

`measure` runs the programs of workloads/apps under `ethermem emulate --once`, without delays and
with those of three networks, and appends a row for each run to the data. A program is repeated
until each interval by waits is useful. The machine may do other work meanwhile. `show` prints the
tables of docs/study.md. It needs scipy.
"""

import argparse
import collections
import csv
import importlib.util
import math
import random
import statistics
import sys
from pathlib import Path

import study_slowdowns
from study_slowdowns import (
    LOSS_MAX,
    NETWORKS,
    NONE,
    PAGE_BYTES,
    ROOT,
    interval,
    run_once,
    table,
)

DATA = ROOT / "workloads" / "apps" / "waits.csv"
APPS = [
    "redis",
    "memcached",
    "sqlite",
    "duckdb",
    "numpy-stencil",
    "gxx",
    "timely-pagerank",
    "graph-pagerank",
    "graph-components",
    "zstd",
    "sort",
    "java-map",
]
COLUMNS = [
    "app",
    "latency_us",
    "gbps",
    "repeat",
    "local_bytes",
    "measured_s",
    "run_s",
    "quiet_s",
    "parallel",
    "stopped_s",
    "waited_s",
    "read_pages",
    "prefetched_pages",
    "written_pages",
]
LOCAL_PERCENT = 25
# The study's class B loses at most this much at 3 us and 100 Gb/s (section 3.2).
LOSS_MAX_B = 1.08
LIMITS = dict(zip(NETWORKS, [LOSS_MAX_B, LOSS_MAX, LOSS_MAX], strict=True))
# As in `ethermem emulate`: an interval wider than the first factor says too little, and one that is
# narrower than the second does not get much narrower.
WIDTH_MAX = 1.25
WIDTH_MIN = 1.02
# A busy machine takes long.
TIMEOUT_S = 900


def row_of(app, local_bytes, network, repeat, said, report):
    """Return the data's row of a run; one that failed has no times."""
    row = {"app": app, "latency_us": network[0], "gbps": network[1], "repeat": repeat}
    row["local_bytes"] = local_bytes
    if said is None:
        return row
    counted = report.get("counted")
    if counted is None:
        sys.exit("study_waits.py: this command or this kernel does not count waits")
    row |= {"measured_s": said["measured_s"], "run_s": f"{report['seconds']:.4f}"}
    row["parallel"] = int(counted["parallel"])
    row |= {f"{name}_s": f"{counted[f'{name}_seconds']:.6f}" for name in ["stopped", "waited"]}
    row["quiet_s"] = f"{counted['quiet_seconds']:.4f}"
    return row | {name: report["counts"][name] for name in COLUMNS if name in report["counts"]}


def load(path):
    """Return the runs by application and network, and in them by repeat."""
    runs = collections.defaultdict(dict)
    if path.exists():
        with path.open() as file:
            for row in csv.DictReader(file):
                network = (row["latency_us"], row["gbps"])
                runs[row["app"], network][int(row["repeat"])] = row
    return runs


def pairs(runs, app, network):
    """Return runs without delays and with those of a network, by repeat, if both ended well."""
    plain, delayed = runs[app, NONE], runs[app, network]
    both = [(plain[repeat], delayed[repeat]) for repeat in sorted(delayed) if repeat in plain]
    return [pair for pair in both if all(row["run_s"] for row in pair)]


def by_waits(found):
    """Return the slowdown by waits and its interval: the arithmetic of `ethermem emulate`."""
    if not found:
        return None
    lows, highs = [], []
    for plain, delayed in found:
        quiet = float(plain["quiet_s"])
        longest = float(plain["run_s"]) if int(plain["parallel"]) else quiet
        lows.append(1 + float(delayed["waited_s"]) / longest)
        highs.append(1 + float(delayed["stopped_s"]) / quiet)
    low, high = interval(lows), interval(highs)
    return math.sqrt(low[0] * high[0]), low[1], high[2]


def by_clock(found):
    """Return the slowdown of the part that matters, by the clock, and its interval."""
    if not found:
        return None
    return interval(
        [float(delayed["measured_s"]) / float(plain["measured_s"]) for plain, delayed in found]
    )


def verdict(estimate, limit):
    """Compare a whole interval with a limit."""
    if estimate is None or estimate[1] is None:
        return "undecided"
    _, low, high = estimate
    return "within" if high <= limit else "above" if low > limit else "undecided"


def is_useful(estimate, limit):
    """Return whether an interval decides and is narrow, or is so narrow that it is at the limit."""
    if estimate is None or estimate[1] is None:
        return False
    width = estimate[2] / estimate[1]
    return width <= WIDTH_MIN or (width <= WIDTH_MAX and verdict(estimate, limit) != "undecided")


def class_of(estimates, is_quiet):
    """Return the study's class, of slowdowns by network.

    Those over the time of a busy machine are too small: what is within a limit may be above it.
    """
    fast, slow = (verdict(estimates[network], LIMITS[network]) for network in NETWORKS[:2])
    if slow == fast == "above":
        return "neither"
    if is_quiet and slow == "within":
        return "A"
    return "B" if is_quiet and slow == "above" and fast == "within" else "undecided"


def has_enough(runs, app, repeats):
    """Return whether an application ran often enough with each network."""
    found = {network: pairs(runs, app, network) for network in NETWORKS}
    return all(
        len(found[network]) >= repeats and is_useful(by_waits(found[network]), LIMITS[network])
        for network in NETWORKS
    )


def has_failed(runs, app):
    """Return whether a run of an application failed, or took too long: more would as well."""
    points = [NONE, *NETWORKS]
    return any(not row["run_s"] for network in points for row in runs[app, network].values())


def measure(arguments):
    """Run what the data lack; the order is drawn for each repeat."""
    runs = load(arguments.data)
    with arguments.data.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if file.tell() == 0:
            writer.writeheader()
        for app in arguments.apps:
            known = next(iter(runs[app, NONE].values()), None)
            local = int(known["local_bytes"]) if known else None
            for repeat in range(arguments.repeats_max):
                if has_failed(runs, app) or has_enough(runs, app, arguments.repeats):
                    break
                points = [NONE, *NETWORKS]
                random.Random(f"{repeat} {app}").shuffle(points)
                for network in points:
                    if repeat in runs[app, network]:
                        continue
                    if local is None:
                        said, report = run_once(
                            arguments.command, app, "100%", NONE, arguments.timeout_s
                        )
                        if said is None:
                            sys.exit(f"study_waits.py: {app} fails with all memory local")
                        peak = report["counts"]["held_pages"] * PAGE_BYTES
                        local = peak * LOCAL_PERCENT // 100
                    outcome = run_once(
                        arguments.command, app, f"{local}B", network, arguments.timeout_s
                    )
                    row = row_of(app, local, network, repeat, *outcome)
                    writer.writerow(row)
                    file.flush()
                    row = {name: str(row.get(name, "")) for name in COLUMNS}
                    runs[app, network][repeat] = row
                    print(*row.values(), flush=True)


def times_of(quiet, app):
    """Return the undelayed times of a quiet machine, at a quarter local, by repeat."""
    key = app, LOCAL_PERCENT, NONE
    return [row["run_s"] for row in quiet[key].values() if row["run_s"]] if key in quiet else []


def demands(runs, quiet, app):
    """Return swap bandwidth in Gb/s and waits a second, without delays, at a quarter local.

    They are over the time of a quiet machine, if it is known.
    """
    plain = [row for row in runs[app, NONE].values() if row["run_s"]]
    times = times_of(quiet, app) or [row["quiet_s"] for row in plain]
    seconds = statistics.fmean(map(float, times))
    kinds = ["read", "prefetched", "written"]
    pages = statistics.fmean(sum(int(row[f"{kind}_pages"]) for kind in kinds) for row in plain)
    waits = statistics.fmean(int(row["read_pages"]) for row in plain)
    return pages * PAGE_BYTES * 8 / seconds / 1e9, waits / seconds


def slowdowns(runs, app, of=by_waits):
    """Return the slowdowns of an application by network."""
    return {network: of(pairs(runs, app, network)) for network in NETWORKS}


def over_quiet_time(runs, quiet, app):
    """Return the slowdowns by waits over the undelayed time of a quiet machine, if it is known.

    Waits follow from the program's order and the delays, so they hardly depend on other work. The
    undelayed time does: caches are cold more often, and a server's clients wait for processors.
    """
    times = times_of(quiet, app)
    if not times:
        return None
    found = {}
    for network in NETWORKS:
        both = pairs(runs, app, network)
        found[network] = by_waits(
            [
                (plain | {"quiet_s": times[at % len(times)], "run_s": times[at % len(times)]}, slow)
                for at, (plain, slow) in enumerate(both)
            ]
        )
    return found


def best(runs, quiet, app):
    """Return the slowdowns by waits that other work changes least, and over which time they are."""
    found = over_quiet_time(runs, quiet, app)
    return (found, "quiet") if found else (slowdowns(runs, app), "busy")


def stretch(runs, quiet, app):
    """Return how many times as long as on a quiet machine an undelayed run took, without waits."""
    times = [float(row["quiet_s"]) for row in runs[app, NONE].values() if row["run_s"]]
    alone = list(map(float, times_of(quiet, app)))
    return statistics.fmean(times) / statistics.fmean(alone) if alone else None


def clock(runs, quiet, app):
    """Return slowdowns by the clock, and the machine: quiet, where slowdowns.csv has them."""
    base = (LOCAL_PERCENT, NONE)
    found = {
        network: study_slowdowns.ratios(quiet, app, LOCAL_PERCENT, network, base)
        for network in NETWORKS
    }
    if all(found.values()):
        return {network: interval(ratios) for network, ratios in found.items()}, "quiet"
    return slowdowns(runs, app, by_clock), "busy"


def say(estimate):
    """Format a slowdown and its interval, in three digits where they count."""
    if estimate is None:
        return "did not end"
    mean, low, high = estimate
    return f"{mean:.3f}" if low is None else f"{mean:.3f} ({low:.3f} to {high:.3f})"


def measured(runs):
    """Return the applications that ended well without delays, in their order."""
    return [app for app in APPS if any(row["run_s"] for row in runs[app, NONE].values())]


def show(arguments):
    """Print the classes."""
    runs = load(arguments.data)
    names = [f"{latency} us, {gbps} Gb/s" for latency, gbps in NETWORKS]
    quiet = study_slowdowns.load(study_slowdowns.DATA)
    waits, clocks = [], []
    for app in measured(runs):
        swap, a_second = demands(runs, quiet, app)
        count = len(pairs(runs, app, NETWORKS[0]))
        ours, time = best(runs, quiet, app)
        factor = stretch(runs, quiet, app)
        cells = [
            app,
            class_of(ours, time == "quiet"),
            *(say(ours[network]) for network in NETWORKS),
            time,
        ]
        cells += [f"{factor:.1f}" if factor else "", f"{swap:.2f}", f"{a_second:,.0f}"]
        waits.append([*cells, str(count)])
        other, machine = clock(runs, quiet, app)
        cells = [
            app,
            class_of(other, machine == "quiet"),
            *(say(other[network]) for network in NETWORKS),
        ]
        clocks.append([*cells, machine])
    head = ["program", "class by waits", *names, "time of a machine that is", "stretch"]
    absent = [app for app in APPS if app not in measured(runs)]
    blank = ["undecided", *["not measured"] * len(NETWORKS)]
    waits += [[app, *blank, "", "", "", "", "0"] for app in absent]
    clocks += [[app, *blank, ""] for app in absent]
    table([*head, "swap, Gb/s", "waits a second", "repeats"], waits)
    table(["program", "class by the clock", *names, "machine"], clocks)


def main():
    """Measure or show."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("do", choices=["measure", "show"])
    parser.add_argument("--command", default=str(ROOT / "target" / "release" / "ethermem"))
    parser.add_argument("--apps", type=lambda text: text.split(","), default=APPS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--repeats-max", type=int, default=12)
    parser.add_argument("--timeout-s", type=float, default=TIMEOUT_S)
    parser.add_argument("--data", type=Path, default=DATA)
    arguments = parser.parse_args()
    if importlib.util.find_spec("scipy") is None:
        parser.error("it needs the Python package scipy")
    unknown = [app for app in arguments.apps if app not in APPS]
    if unknown:
        parser.error(f"no application {unknown[0]!r}; must be of {', '.join(APPS)}")
    if not 1 < arguments.repeats <= arguments.repeats_max:
        parser.error("--repeats: must be 2 to --repeats-max")
    {"measure": measure, "show": show}[arguments.do](arguments)


if __name__ == "__main__":
    main()
