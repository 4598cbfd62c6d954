"""SciPy's sparse graphs: PageRank and connected components on an R-MAT graph, as in GAP."""

import sys
from functools import partial

from ..app import APPS, App, Outcome, PyPi, Run, run_reporting
from ..data import graph

# Vertices are 2^scale.
SCALE = {"small": 16, "full": 19}
ROUNDS = {
    ("pagerank", "small"): 60,
    ("pagerank", "full"): 40,
    ("components", "small"): 10,
    ("components", "full"): 10,
}


def _run(kind: str, run: Run) -> Outcome:
    scale, rounds = SCALE[run.size], ROUNDS[kind, run.size]
    program = APPS / "graph" / "program.py"
    return run_reporting(
        run, [sys.executable, program, kind, graph(scale), str(scale), str(rounds)]
    )


PACKAGE = PyPi("scipy", "BSD-3-Clause")
GRAPH = [
    App("graph-pagerank", "PageRank of an R-MAT graph", PACKAGE, partial(_run, "pagerank")),
    App("graph-components", "connected components of it", PACKAGE, partial(_run, "components")),
]
