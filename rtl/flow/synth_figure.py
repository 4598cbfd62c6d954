"""Draws what `make synth` measured against N, with the fits out to 512 ports, for docs/rtl."""

import json
import math

import matplotlib as mpl
from matplotlib import pyplot

from flow import synth, synth_fit, tools

FIGURE = tools.ROOT / "docs" / "rtl" / "silicon.svg"
# Text stays text, and the same figures make the same file.
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


def levels(axes, rows):
    """The longest path of what grows with N."""
    tops = sorted({row["top"] for row in rows if row["ports"] and row["target"] == "quick"})
    for at, top in enumerate(tops):
        chosen = [row for row in rows if row["top"] == top and row["target"] == "quick"]
        points = [(row["ports"], row["levels"]) for row in chosen if row.get("levels")]
        if not points:
            continue
        axes.plot(*zip(*points, strict=True), "o-", color=f"C{at}", label=top, markersize=4)
    axes.axhline(30, color="black", linewidth=0.8, linestyle=":")
    axes.set(xscale="log", xlabel="ports N", ylabel="levels of the longest path")
    axes.set_xticks([2, 4, 8, 16, 32, 64], [2, 4, 8, 16, 32, 64])
    axes.legend(fontsize=7)


def main():
    """Draws the figure from the results."""
    found = json.loads(synth.RESULTS.read_text(encoding="utf-8"))
    fits = [fit for fit in found["fits"] if fit["quantity"] == "transistors"]
    with mpl.rc_context(STYLE):
        figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
        for at, fit in enumerate(fits):
            line(left, fit, f"C{at}")
        ticks = [2**power for power in range(1, 1 + int(math.log2(synth_fit.EXTRAPOLATED_PORTS)))]
        left.set(xscale="log", yscale="log", xlabel="ports N", ylabel="transistors (estimate)")
        left.set_xticks(ticks, ticks)
        left.legend(fontsize=7)
        levels(right, found["rows"])
        FIGURE.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(FIGURE, metadata={"Date": None})
    print(f"drawn: {FIGURE.relative_to(tools.ROOT)}")


if __name__ == "__main__":
    main()
