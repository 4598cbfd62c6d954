"""Figures hold the numbers of the results."""

import numpy
import pyarrow
import pytest
from matplotlib.figure import Figure

import ethermem
from ethermem import plot, sweep

SMALL = {"fabric": {"nodes": 8}, "workload": {"messages": 1000}}


def runs(*fabrics):
    """Runs of two loads on each fabric, the higher load first."""
    loads = [{"workload.load": load} for load in (0.6, 0.3)]
    return [ethermem.run(SMALL, load, fabric=fabric) for fabric in fabrics for load in loads]


def drawn(figure):
    """The lines of a figure by their names in its legend."""
    axes = figure.axes[0]
    handles, labels = axes.get_legend_handles_labels()
    return dict(zip(labels, handles, strict=True))


def test_slowdown_is_drawn_over_load(tmp_path):
    results = runs("edm", "cxl")
    figure = plot.slowdown_by_load(results, "p99")
    lines = drawn(figure)
    assert list(lines) == ["edm", "cxl"], "in the order given"
    line = lines["edm"].lines[0]
    assert list(line.get_xdata()) == [0.3, 0.6]
    assert list(line.get_ydata()) == [results[at].kinds.all.slowdown_p99 for at in (1, 0)]
    assert figure.axes[0].get_ylabel() == "slowdown, p99"
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 1000


def test_the_intervals_of_a_sweep_are_drawn(tmp_path):
    (tmp_path / "base.toml").write_text("[fabric]\nnodes = 8\n[workload]\nmessages = 500\n")
    text = "scenario = 'base.toml'\nseeds = 3\n[vary]\nworkload.load = [0.3, 0.6]\n"
    (tmp_path / "w.toml").write_text(text)
    rows = sweep.sweep(tmp_path / "w.toml", tmp_path / "r.parquet")
    line = drawn(plot.slowdown_by_load(rows))["edm"]
    means = rows["slowdown_mean_seeds_mean"].to_pylist()
    assert list(line.lines[0].get_ydata()) == [means[0], means[3]]
    ends = line.lines[2][0].get_segments()
    half_widths = rows["slowdown_mean_seeds_ci95_half_width"].to_pylist()
    assert numpy.isclose(ends[0][1][1] - ends[0][0][1], 2 * half_widths[0])
    twice = pyarrow.concat_tables(
        [
            rows,
            rows.set_column(
                rows.column_names.index("slowdown_mean_seeds_mean"),
                "slowdown_mean_seeds_mean",
                pyarrow.array([mean + 1 for mean in means]),
            ),
        ]
    )
    with pytest.raises(ethermem.InputError, match=r"something but workload\.load was varied"):
        plot.slowdown_by_load(twice)
    with pytest.raises(ethermem.InputError, match="must be those of a sweep over"):
        plot.slowdown_by_load(rows.drop_columns(["workload.load"]))


def test_a_distribution_is_drawn_to_its_tail():
    result = ethermem.run(SMALL)
    line = drawn(plot.latency_cdf([result], "read"))[f"edm, {result.label}"]
    cdf = result.latency_cdf("read")
    assert list(line.get_xdata()) == list(cdf.latency_ns[:-1])
    assert list(line.get_ydata()) == list(1 - cdf.share[:-1])
    with pytest.raises(ethermem.InputError, match="no rmw messages to draw"):
        plot.latency_cdf([result], "rmw")


def test_a_figure_can_be_drawn_into_another():
    figure = Figure()
    left, right = figure.subplots(1, 2)
    results = runs("edm")
    assert plot.slowdown_by_load(results, ax=left) is figure
    assert plot.latency_cdf(results, ax=right) is figure
    assert all(axes.get_legend() is not None for axes in (left, right))
