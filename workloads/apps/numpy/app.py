"""NumPy: a stencil, which streams over its memory, and a gather, which jumps about in it."""

import sys
from functools import partial

from ..app import APPS, App, Outcome, PyPi, Run, run_reporting

# Arguments of the program: side and rounds, words and reads.
WORK = {
    ("stencil", "small"): (3500, 8),
    ("stencil", "full"): (11_000, 30),
    ("gather", "small"): (1 << 23, 1 << 20),
    ("gather", "full"): (1 << 26, 1 << 22),
}


def _run(kind: str, run: Run) -> Outcome:
    program = APPS / "numpy" / "program.py"
    return run_reporting(run, [sys.executable, program, kind, *map(str, WORK[kind, run.size])])


PACKAGE = PyPi("numpy", "BSD-3-Clause")
NUMPY = [
    App("numpy-stencil", "five-point stencil on a grid", PACKAGE, partial(_run, "stencil")),
    App("numpy-gather", "random reads and writes of a table", PACKAGE, partial(_run, "gather")),
]
