"""Draws what `make synth` measured against N, with the fits out to 512 ports, for docs/rtl."""

import json
import math

import matplotlib as mpl
from matplotlib import pyplot

from flow import synth, synth_fit, tools

FIGURE = tools.ROOT / "docs" / "rtl" / "silicon.svg"
# Text stays text, and the same figures make the same file.
TRANSISTORS_MAX = 1e13
BESIDE = {"fontsize": 7, "loc": "upper left", "bbox_to_anchor": (1, 1), "frameon": False}
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "silicon", "font.size": 9, "axes.grid": True}


def line(axes, fit, colour):
    """The points of a fit, its line, and where its prediction at 512 ports may lie."""
    ports = [fit["points"][0][0], synth_fit.EXTRAPOLATED_PORTS]
    scale = fit["at_512"] / ports[1] ** fit["exponent"]
    axes.plot(*zip(*fit["points"], strict=True), "o", color=colour, markersize=4)
    label = f"{fit['top']}, $N^{{{fit['exponent']:.2f}}}$"
    axes.plot(ports, [scale * n ** fit["exponent"] for n in ports], color=colour, label=label)
    low, high = fit["at_512_low"], fit["at_512_high"]
    axes.errorbar(
        [ports[1]],
        [fit["at_512"]],
        [[fit["at_512"] - low], [high - fit["at_512"]]],
        color=colour,
        capsize=3,
    )


def levels(axes, rows, colours):
    """The longest path of what grows with N."""
    for top, colour in colours.items():
        chosen = [row for row in rows if row["top"] == top]
        points = [(row["ports"], row["levels"]) for row in chosen if row.get("levels")]
        if not points:
            continue
        axes.plot(*zip(*points, strict=True), "o-", color=colour, label=top, markersize=4)
    axes.axhline(30, color="black", linewidth=0.8, linestyle=":")
    axes.set(xscale="log", xlabel="ports N", ylabel="levels of the longest path")
    axes.set_xticks([2, 4, 8, 16, 32, 64], [2, 4, 8, 16, 32, 64])
    axes.set_xticks([], minor=True)
    axes.legend(**BESIDE)


def main():
    """Draws the figure from the results."""
    found = json.loads(synth.RESULTS.read_text(encoding="utf-8"))
    fits = [fit for fit in found["fits"] if fit["quantity"] == "transistors"]
    with mpl.rc_context(STYLE):
        figure, (left, right) = pyplot.subplots(1, 2, figsize=(13, 4.8), layout="constrained")
        rows = [row for row in found["rows"] if row["ports"] and row["target"] == "quick"]
        tops = sorted({row["top"] for row in rows})
        colours = dict(zip(tops, mpl.color_sequences["tab20"], strict=False))
        for fit in fits:
            line(left, fit, colours[fit["top"]])
        ticks = [2**power for power in range(1, 1 + int(math.log2(synth_fit.EXTRAPOLATED_PORTS)))]
        left.set(xscale="log", yscale="log", xlabel="ports N", ylabel="transistors (estimate)")
        # Of a few points that bend, the interval is wider than the page.
        left.set_ylim(1, TRANSISTORS_MAX)
        left.set_xticks(ticks, ticks)
        left.set_xticks([], minor=True)
        left.legend(**BESIDE)
        levels(right, rows, colours)
        FIGURE.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(FIGURE, metadata={"Date": None})
    print(f"drawn: {FIGURE.relative_to(tools.ROOT)}")


if __name__ == "__main__":
    main()
