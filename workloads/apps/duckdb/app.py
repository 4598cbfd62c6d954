"""DuckDB with a database in memory: the queries, and the answer, of SQLite."""

import sys

from ..app import APPS, App, Outcome, PyPi, Run, run_reporting
from ..sql import QUERIES, SCHEMA, data

# DuckDB is quick: the queries are asked so often that there is something to measure.
ROUNDS = 1


def _run(run: Run) -> Outcome:
    script = run.scratch / "script.sql"
    script.write_text("\0".join([SCHEMA, *QUERIES * ROUNDS]), encoding="ascii")
    program = APPS / "duckdb" / "program.py"
    return run_reporting(run, [sys.executable, program, *data(run.size), script])


PACKAGE = PyPi("duckdb", "MIT")
DUCKDB = [App("duckdb", "the same queries, columns and two threads", PACKAGE, _run)]
