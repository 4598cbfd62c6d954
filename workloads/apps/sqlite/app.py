"""SQLite's shell with a database in memory."""

import re

from ..app import App, AppError, Debian, Outcome, Run, digest, run_batch
from ..sql import QUERIES, SCHEMA, data

# The shell's timer prints seconds; the queries are what is measured, not the import.
TIMED = re.compile(r"^Run Time: real ([\d.]+) ")


def _run(run: Run) -> Outcome:
    orders, lines = data(run.size)
    script = run.scratch / "script.sql"
    imports = f".mode csv\n.import '{orders}' orders\n.import '{lines}' lines\n"
    keys = "CREATE INDEX ids ON orders(o_id);\nCREATE INDEX owners ON lines(l_order);\n"
    script.write_text(SCHEMA + imports + keys + ".timer on\n" + "".join(QUERIES), encoding="ascii")
    printed, _, resident = run_batch(run, ["sqlite3", "-batch", ":memory:", f".read '{script}'"])
    rows, measured_s = [], 0.0
    for line in printed.splitlines():
        if timed := TIMED.match(line):
            measured_s += float(timed[1])
        else:
            rows.append(line)
    if len(rows) < len(QUERIES):
        raise AppError(f"SQLite printed {len(rows)} rows")
    return Outcome(digest(f"{row}\n".encode() for row in rows), measured_s, resident)


PACKAGE = Debian("sqlite3", "public domain", "sqlite3")
SQLITE = [App("sqlite", "four queries like TPC-H's, in memory", PACKAGE, _run)]
