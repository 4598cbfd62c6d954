"""Timely dataflow: PageRank with two workers; the ranks, and so the answer, are SciPy's."""

from ..app import App, Cargo, Outcome, Run, run_reporting
from ..data import graph
from ..graph.app import ROUNDS, SCALE

WORKERS = 2
PACKAGE = Cargo("timely", "MIT", "timely")


def _run(run: Run) -> Outcome:
    scale, rounds = SCALE[run.size], ROUNDS["pagerank", run.size]
    words = [str(scale), str(rounds), str(WORKERS)]
    return run_reporting(run, [PACKAGE.program, graph(scale), *words])


TIMELY = [App("timely-pagerank", "the same PageRank as a dataflow, two workers", PACKAGE, _run)]
