"""Load tables into DuckDB and run queries: `program.py ORDERS LINES SCRIPT`."""

import hashlib
import sys
import time
from pathlib import Path

import duckdb

if __name__ == "__main__":
    orders, lines, script = sys.argv[1:4]
    schema, *queries = Path(script).read_text(encoding="ascii").split("\0")
    database = duckdb.connect(":memory:", config={"threads": 2})
    database.execute(schema)
    for table, path in (("orders", orders), ("lines", lines)):
        database.execute(f"COPY {table} FROM '{path}' (FORMAT csv, HEADER false)")
    sha = hashlib.sha256()
    begun = time.monotonic()
    for query in queries:
        for row in database.execute(query).fetchall():
            sha.update((",".join(map(str, row)) + "\n").encode())
    took_s = time.monotonic() - begun
    print(f"answer={sha.hexdigest()[:32]} measured_s={took_s:.6f}")
