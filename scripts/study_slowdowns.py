#!/usr/bin/env python3
"""Measure the cost of networks for real programs whose memory is remote, and plot it.

    python3 scripts/study_slowdowns.py measure [--apps duckdb,redis] [--repeats 4]
    python3 scripts/study_slowdowns.py draw

`measure` runs the programs of workloads/apps under `ethermem emulate --once`, on an otherwise idle
machine, and appends a row for each run to the data; runs already in the data are not
repeated. `draw` prints the tables of docs/study.md and writes its figures. It needs matplotlib and
scipy.
"""

import argparse
import collections
import csv
import json
import math
import random
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "workloads" / "apps" / "slowdowns.csv"
COLUMNS = [
    "app",
    "local_percent",
    "latency_us",
    "gbps",
    "repeat",
    "measured_s",
    "run_s",
    "faults",
    "read_pages",
    "prefetched_pages",
    "written_pages",
    "delays",
    "delay_error_percent",
]
# Networks of Gao et al., OSDI 2016, and no delay at all.
NETWORKS = [("3", "100"), ("5", "40"), ("10", "10")]
NONE = ("0", "")
ALL = 100
SHARES = [10, 25, 50, 75, ALL]
APPS = [
    "redis",
    "memcached",
    "sqlite",
    "duckdb",
    "timely-pagerank",
    "graph-pagerank",
    "numpy-stencil",
    "gxx",
]
PAGE_BYTES = 4096
TIMEOUT_S = 240
# The study's class A loses at most this much at 5 us and 40 Gb/s, with a quarter local.
LOSS_MAX = 1.05
# An interval that is wider than this factor is inconclusive.
WIDEST = 1.5


def run_once(command, app, local, network, timeout_s=TIMEOUT_S):
    """Run an application once; return its output, and the pager's report."""
    latency, gbps = network
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        under = f"{command} emulate --once --local {local} --latency-us {latency}"
        under += f" --bandwidth-gbps {gbps}" if gbps else ""
        under += f" --report {report.name} --"
        words = [str(ROOT / "workloads" / "apps" / "run"), app, "--under", under]
        words += ["--timeout-s", str(timeout_s)]
        run = subprocess.run(words, stdout=subprocess.PIPE, check=False)
        if run.returncode != 0:
            return None, None
        said = dict(word.partition("=")[::2] for word in run.stdout.decode().split())
        return said, json.load(report)


def row_of(app, share, network, repeat, said, report):
    """Return the data's row of a run."""
    row = {"app": app, "local_percent": share, "latency_us": network[0], "gbps": network[1]}
    row["repeat"] = repeat
    if said is None:
        return row
    counts = report["counts"]
    row |= {"measured_s": said["measured_s"], "run_s": f"{report['seconds']:.3f}"}
    row |= {name: counts[name] for name in COLUMNS if name in counts}
    row["delays"] = report["accuracy"]["accesses"]
    row["delay_error_percent"] = f"{report['accuracy']['error_mean_percent']:.2f}"
    return row


def measure(arguments):
    """Run what the data lack, alternately, in a random order for each repeat."""
    path = arguments.data
    rows = []
    if path.exists():
        with path.open() as file:
            rows = list(csv.DictReader(file))
    done = {tuple(row[name] for name in COLUMNS[:5]) for row in rows}
    fresh = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if fresh:
            writer.writeheader()
        peaks = {}
        for repeat in range(arguments.repeats):
            for app in arguments.apps:
                points = [(share, network) for share in SHARES for network in [NONE, *NETWORKS]]
                random.Random(f"{repeat} {app}").shuffle(points)
                points = [
                    (share, network)
                    for share, network in points
                    if (app, str(share), *network, str(repeat)) not in done
                ]
                if points and app not in peaks:
                    said, report = run_once(arguments.command, app, "100%", NONE)
                    if said is None:
                        raise SystemExit(f"{app} does not run with all memory local")
                    peaks[app] = report["counts"]["held_pages"] * PAGE_BYTES
                for share, network in points:
                    local = "100%" if share == ALL else f"{peaks[app] * share // 100}B"
                    outcome = run_once(arguments.command, app, local, network)
                    row = row_of(app, share, network, repeat, *outcome)
                    writer.writerow(row)
                    file.flush()
                    print(*(row.get(name, "") for name in COLUMNS), flush=True)


def interval(ratios):
    """Return the geometric mean of ratios and its 95 % interval."""
    from scipy import stats  # noqa: PLC0415

    logs = [math.log(ratio) for ratio in ratios]
    mean = statistics.fmean(logs)
    if len(logs) == 1:
        return math.exp(mean), None, None
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    low, high = stats.t.interval(0.95, len(logs) - 1, mean, error) if error else (mean, mean)
    return math.exp(mean), math.exp(low), math.exp(high)


def is_clear(estimate):
    """Return whether an estimate is conclusive."""
    return bool(estimate) and estimate[1] is not None and estimate[2] / estimate[1] <= WIDEST


def load(path):
    """Return the runs by application, fraction and network."""
    runs = collections.defaultdict(dict)
    with path.open() as file:
        for row in csv.DictReader(file):
            point = (row["app"], int(row["local_percent"]), (row["latency_us"], row["gbps"]))
            runs[point][int(row["repeat"])] = row
    return runs


def ratios(runs, app, share, network, over):
    """Return the times at a point over those at another, by repeat; None where a run failed."""
    slow, fast = runs[app, share, network], runs[app, *over]
    pairs = [(slow[repeat], fast[repeat]) for repeat in slow if repeat in fast]
    if not pairs or any(not row["measured_s"] for pair in pairs for row in pair):
        return None
    return [float(one["measured_s"]) / float(other["measured_s"]) for one, other in pairs]


def swap_gbps(run):
    """Return the traffic of a run over its time, in Gb/s."""
    pages = sum(int(run[f"{kind}_pages"]) for kind in ["read", "prefetched", "written"])
    return pages * PAGE_BYTES * 8 / float(run["run_s"]) / 1e9


def say(estimate):
    """Format a mean and its interval."""
    if estimate is None:
        return f"over {TIMEOUT_S} s"
    mean, low, high = estimate
    return f"{mean:.2f}" if low is None else f"{mean:.2f} ({low:.2f} to {high:.2f})"


def table(head, rows):
    """Print a Markdown table."""
    print("\n| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def estimates(runs, apps):
    """Return the slowdown of each application, fraction and network over no delay."""
    found = {}
    for app in apps:
        for share in SHARES:
            for network in NETWORKS:
                pairs = ratios(runs, app, share, network, (share, NONE))
                found[app, share, network] = interval(pairs) if pairs else None
    return found


def print_tables(runs, apps, found):
    """Print slowdowns and this machine's own overhead; study_waits.py has the classes."""
    head = ["program", "network", *(f"{share} %" for share in SHARES)]
    rows = [
        [app, f"{network[0]} us, {network[1]} Gb/s"]
        + [say(found[app, share, network]) for share in SHARES]
        for app in apps
        for network in NETWORKS
    ]
    table(head, rows)
    rows = []
    for app in apps:
        pairs = [ratios(runs, app, share, NONE, (ALL, NONE)) for share in SHARES]
        rows.append([app, *(say(interval(pair) if pair else None) for pair in pairs)])
    table(["program", *head[2:]], rows)


def swap_points(runs, apps, found, network):
    """Return swap bandwidth without delays and loss with them, at each fraction below 100 %."""
    points = []
    for app in apps:
        for share in SHARES[:-1]:
            base = [row for row in runs[app, share, NONE].values() if row["run_s"]]
            if is_clear(found[app, share, network]) and base:
                gbps = sum(map(swap_gbps, base)) / len(base)
                points.append((app, share, gbps, found[app, share, network][0]))
    return points


def plot_slowdowns(axes, app, found):
    """Draw an application's slowdowns by fraction; a hollow mark has an inconclusive interval."""
    for index, network in enumerate(NETWORKS):
        color = f"C{index}"
        at = {share: found[app, share, network] for share in SHARES}
        clear = {share: it for share, it in at.items() if is_clear(it)}
        bars = [[mean - low for mean, low, _ in clear.values()]]
        bars += [[high - mean for mean, _, high in clear.values()]]
        means = [mean for mean, _, _ in clear.values()]
        label = f"{network[0]} us, {network[1]} Gb/s"
        axes.errorbar(
            list(clear), means, bars, marker="o", ms=3, capsize=2, color=color, label=label
        )
        unclear = {share: it[0] for share, it in at.items() if it and share not in clear}
        axes.scatter(list(unclear), list(unclear.values()), s=18, facecolor="none", edgecolor=color)
    axes.axhline(LOSS_MAX, color="0.6", linewidth=0.8, linestyle="--")
    axes.set_title(app)
    axes.set_xlabel("local memory, % of peak")
    axes.set_ylabel("slowdown")


def draw(arguments):
    """Print the tables and draw the figures."""
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("svg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    mpl.rcParams["svg.hashsalt"] = "ethermem"
    runs = load(arguments.data)
    apps = [app for app in APPS if any(point[0] == app for point in runs)]
    found = estimates(runs, apps)
    print_tables(runs, apps, found)
    columns = 3
    lines = math.ceil(len(apps) / columns)
    figure, grid = plt.subplots(lines, columns, figsize=(11, 3.1 * lines), constrained_layout=True)
    for axes, app in zip(grid.flat, apps, strict=False):
        plot_slowdowns(axes, app, found)
    for axes in list(grid.flat)[len(apps) :]:
        axes.axis("off")
    grid.flat[0].legend()
    figure.savefig(arguments.out / "study-slowdowns.svg", metadata={"Date": None})
    figure, grid = plt.subplots(1, len(NETWORKS), figsize=(12, 3.6), constrained_layout=True)
    for axes, network in zip(grid, NETWORKS, strict=True):
        points = swap_points(runs, apps, found, network)
        for app in apps:
            own = [point for point in points if point[0] == app]
            axes.scatter([it[2] for it in own], [it[3] for it in own], s=14, label=app)
        pearson = statistics.correlation([it[2] for it in points], [it[3] for it in points])
        name = f"{network[0]} us, {network[1]} Gb/s"
        print(f"\n{name}: correlation of slowdown with swap bandwidth {pearson:.2f}")
        axes.set_title(f"{name}: r = {pearson:.2f}")
        axes.set_xlabel("swap bandwidth without delays, Gb/s")
        axes.set_ylabel("slowdown")
    grid[0].legend(fontsize=7)
    figure.savefig(arguments.out / "study-figure6.svg", metadata={"Date": None})


def main():
    """Measure or draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("do", choices=["measure", "draw"])
    parser.add_argument("--command", default=str(ROOT / "target" / "release" / "ethermem"))
    parser.add_argument("--apps", type=lambda text: text.split(","), default=APPS)
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images")
    arguments = parser.parse_args()
    if arguments.do == "measure":
        measure(arguments)
    else:
        draw(arguments)


if __name__ == "__main__":
    main()
