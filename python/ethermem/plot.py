"""Figures of results; needs matplotlib, which `pip install 'ethermem[plot]'` brings."""

from collections.abc import Iterable
from typing import Literal

import pyarrow
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ._native import InputError
from .result import KindName, Result

Statistic = Literal["mean", "p50", "p99", "p999", "max"]

#: The column of a sweep's results that holds the load asked for.
LOAD = "workload.load"
#: Latencies with more than this ratio are drawn on a logarithmic axis.
WIDE = 10


def slowdown_by_load(
    results: "Iterable[Result] | pyarrow.Table",
    statistic: Statistic = "mean",
    *,
    ax: Axes | None = None,
) -> Figure:
    """Draw slowdown over load, a line for each fabric.

    Args:
        results: runs of `run`, in any order; or the rows of a sweep over `workload.load` alone,
            whose 95 % confidence intervals over seeds are drawn too.
        statistic: of all messages of a run; of a sweep, its mean over seeds.
        ax: where to draw; a figure of its own by default.
    """
    is_sweep = isinstance(results, pyarrow.Table)
    points = _swept(results, statistic) if is_sweep else _run(results, statistic)
    figure, axes = _axes(ax)
    # The given order is kept, so that a fabric has one colour in several figures.
    for fabric in dict.fromkeys(fabric for fabric, *_ in points):
        line = sorted(point for point in points if point[0] == fabric)
        _, load, slowdown, half_width = zip(*line, strict=True)
        errors = half_width if any(half_width) else None
        axes.errorbar(load, slowdown, yerr=errors, marker="o", capsize=3, label=fabric)
    axes.set_xlabel("load, share of the links")
    axes.set_ylabel(f"slowdown, {statistic}")
    axes.set_ylim(bottom=min(1, axes.get_ylim()[0]))
    axes.legend()
    return figure


def latency_cdf(
    results: Iterable[Result], kind: KindName = "all", *, ax: Axes | None = None
) -> Figure:
    """Draw the share of messages that took longer than a latency, in ns, on a logarithmic axis.

    The complement of the distribution is what shows the tail: 99 % of the messages lie above 0.01.

    Args:
        results: runs of `run`, a line for each.
        kind: the messages to draw.
        ax: where to draw; a figure of its own by default.
    """
    figure, axes = _axes(ax)
    for result in results:
        points = result.latency_cdf(kind)
        if points.empty:
            raise InputError(f"{result.label} on {result.fabric}: no {kind} messages to draw")
        # The last point, which no message exceeds, has no place on a logarithmic axis.
        tail = points[points.share < 1]
        axes.step(tail.latency_ns, 1 - tail.share, where="post", label=_label(result))
    shortest, longest = axes.get_xlim()
    if longest > WIDE * max(shortest, 1):
        axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("latency, ns")
    axes.set_ylabel("share of messages that take longer")
    axes.legend()
    return figure


def _axes(ax: Axes | None) -> tuple[Figure, Axes]:
    if ax is None:
        # This is not a figure of pyplot, which would keep it for ever and ask for a display.
        figure = Figure(figsize=(6.4, 4), layout="constrained")
        return figure, figure.add_subplot()
    figure = ax.figure.figure if ax.figure is not None else None
    if not isinstance(figure, Figure):
        raise InputError("ax: must be axes that lie in a figure")
    return figure, ax


def _label(result: Result) -> str:
    return f"{result.fabric}, {result.label}"


def _run(results: Iterable[Result], statistic: str) -> list[tuple[str, float, float, float]]:
    points = []
    for result in results:
        load, slowdown = result.load_requested, getattr(result.kinds.all, f"slowdown_{statistic}")
        if load is None or slowdown is None:
            raise InputError(f"{_label(result)}: no load or no measured message to draw")
        points.append((result.fabric, load, slowdown, 0.0))
    return points


def _swept(rows: "pyarrow.Table", statistic: str) -> list[tuple[str, float, float, float]]:
    mean = f"slowdown_{statistic}_seeds_mean"
    if LOAD not in rows.column_names or mean not in rows.column_names:
        raise InputError(f"rows: must be those of a sweep over {LOAD}")
    half_width = f"slowdown_{statistic}_seeds_ci95_half_width"
    # The seeds of a place share its mean.
    points = dict.fromkeys(
        (row["fabric"], row[LOAD], row[mean], row[half_width] or 0.0)
        for row in rows.select(["fabric", LOAD, mean, half_width]).to_pylist()
        if row[mean] is not None
    )
    places = {(fabric, load) for fabric, load, *_ in points}
    if len(places) < len(points):
        raise InputError(f"rows: something but {LOAD} was varied: draw the rows of one value")
    return list(points)
