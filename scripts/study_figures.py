#!/usr/bin/env python3
"""Replay captured page traces on the study's fabrics, and draw its figures 7 and 8.

    python3 scripts/study_figures.py [--command target/release/ethermem] [--traces workloads/traces]

Prints the tables of docs/study.md and writes its figure; equal traces and program version
give equal bytes. It needs matplotlib.
"""

import argparse
import csv
import json
import subprocess
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
from matplotlib import pyplot as plt

FABRICS = ["tcp", "dctcp", "pfabric", "phost", "fastpass", "edm"]
SCOPES = ["datacenter", "rack"]
RATES_GBPS = [40, 100]
MESSAGES = 30_000
SEED = 1


def replay(command, trace, speed, scope, gbps, arrivals):
    """Return the outcomes of a trace on every fabric, by the fabric's name."""
    arguments = ["--scope", scope, "--link-gbps", str(gbps), "--arrivals", arrivals]
    arguments += ["--messages", str(MESSAGES), "--seed", str(SEED), "--speed", speed]
    words = [command, "replay", str(trace), "--fabric", ",".join(FABRICS), *arguments]
    words += ["--format", "json"]
    run = subprocess.run(words, check=True, stdout=subprocess.PIPE)
    return {outcome["fabric"]: outcome for outcome in json.loads(run.stdout)}


def percentile_ns(outcome, share):
    """Return the time that this fraction of the reads does not exceed."""
    points = outcome["completion"]["read"]
    return next(point["ns"] for point in points if point["share"] == share)


def table(title, head, rows):
    """Print a Markdown table."""
    print(f"\n{title}\n")
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def print_tables(results, programs):
    """Print mean slowdowns of all, and read times of pFabric and EDM."""
    for arrivals in ["drawn", "as-traced"]:
        for gbps in RATES_GBPS:
            rows = []
            for scope in SCOPES:
                for program in programs:
                    outcomes = results[arrivals, gbps, scope, program]
                    load = max(outcome["offered"]["busiest_load"] for outcome in outcomes.values())
                    means = [f"{outcomes[fabric]['slowdown_mean']:.2f}" for fabric in FABRICS]
                    rows.append([scope, program, f"{load:.3f}", *means])
            title = f"Mean slowdown, {gbps} Gb/s, arrivals {arrivals}:"
            table(title, ["scope", "program", "busiest link", *FABRICS], rows)
    rows = []
    for gbps in RATES_GBPS:
        for scope in SCOPES:
            for program in programs:
                outcomes = results["as-traced", gbps, scope, program]
                cells = [
                    f"{percentile_ns(outcomes[fabric], share) / 1e3:.2f}"
                    for fabric in ["pfabric", "edm"]
                    for share in [0.5, 0.99]
                ]
                rows.append([f"{gbps}", scope, program, *cells])
    head = ["Gb/s", "scope", "program"]
    head += [f"{fabric} {share}" for fabric in ["pfabric", "edm"] for share in ["p50", "p99"]]
    table("Completion times of reads in us, as traced:", head, rows)


def draw(results, programs, path):
    """Draw mean slowdowns at 100 Gb/s as bars: a row for each scope, a column for arrivals."""
    mpl.rcParams["svg.hashsalt"] = "ethermem"
    figure, grid = plt.subplots(2, 2, figsize=(11, 6.5), sharey="col", constrained_layout=True)
    width = 0.8 / len(FABRICS)
    for row, scope in zip(grid, SCOPES, strict=True):
        for axes, arrivals in zip(row, ["drawn", "as-traced"], strict=True):
            for index, fabric in enumerate(FABRICS):
                heights = [
                    results[arrivals, 100, scope, program][fabric]["slowdown_mean"]
                    for program in programs
                ]
                offset = (index - len(FABRICS) / 2 + 0.5) * width
                places = [at + offset for at in range(len(heights))]
                axes.bar(places, heights, width, label=fabric)
            axes.set_xticks(range(len(programs)), programs)
            axes.set_title(f"{scope}, arrivals {arrivals}")
            axes.set_ylabel("mean slowdown")
    # It comes last, because it fixes the upper end that all bars of a column need.
    for axes in grid[1]:
        axes.set_ylim(bottom=1)
    grid[0][1].legend(ncols=2)
    figure.savefig(path, metadata={"Date": None})


def main():
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", default="target/release/ethermem")
    parser.add_argument("--traces", type=Path, default=Path("workloads/traces"))
    parser.add_argument("--out", type=Path, default=Path("docs/images/study-figure7.svg"))
    arguments = parser.parse_args()
    with (arguments.traces / "origin.csv").open() as file:
        traces = {row["trace"]: row["speed"] for row in csv.DictReader(file)}
    results = {
        (arrivals, gbps, scope, program): replay(
            arguments.command,
            arguments.traces / f"{program}.parquet",
            speed,
            scope,
            gbps,
            arrivals,
        )
        for arrivals in ["drawn", "as-traced"]
        for gbps in RATES_GBPS
        for scope in SCOPES
        for program, speed in traces.items()
    }
    print_tables(results, list(traces))
    draw(results, list(traces), arguments.out)


if __name__ == "__main__":
    main()
