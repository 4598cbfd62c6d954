#!/usr/bin/env python3
"""Plot the failed tries of an allocation by how full memory is: figure 13 of Clio's paper.

    cargo run --release -p ethermem-clio --example allocation_retries > retries.txt
    python3 scripts/clio_figure13.py retries.txt [--out docs/images/clio-figure13.svg]

Equal input gives equal bytes. It needs matplotlib.
"""

import argparse
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
from matplotlib import pyplot as plt

PUBLISHED_MOST = 60


def largest(text):
    """Return the percentages and, by allocation, the retries of the largest memory."""
    lines = text[text.rindex("pages of memory") :].splitlines()
    percents = [int(word.rstrip("%")) for word in lines[1].split() if word.endswith("%")]
    rows = {}
    for line in lines[2:]:
        pages, _, *numbers = line.split()
        rows[int(pages)] = [int(number) for number in numbers[: len(percents)]]
    return percents, rows


def draw(percents, rows, path):
    """Draw a step for each allocation, and the published values."""
    mpl.rcParams["svg.hashsalt"] = "ethermem"
    figure, axes = plt.subplots(figsize=(7, 3.6), constrained_layout=True)
    for pages, most in rows.items():
        label = f"{pages} page{'s' if pages > 1 else ''}"
        axes.step([*percents, 100], [*most, most[-1]], where="post", label=label)
    axes.axhline(PUBLISHED_MOST, color="grey", linestyle="--", label="published, at most")
    axes.set_xlabel("memory in use before the allocation, %")
    axes.set_ylabel("most retries of an allocation")
    axes.legend()
    figure.savefig(path, metadata={"Date": None})


def main():
    """Read the example's output, and draw it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("retries", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/images/clio-figure13.svg"))
    arguments = parser.parse_args()
    percents, rows = largest(arguments.retries.read_text())
    draw(percents, rows, arguments.out)


if __name__ == "__main__":
    main()
