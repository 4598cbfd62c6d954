"""PySpark: sort, word count and SQL; the limited program is the Java machine that does the work."""

import importlib.util
import sys
from functools import partial
from pathlib import Path

from ..app import APPS, App, AppError, Outcome, PyPi, Run, digest, run_reporting
from ..data import records, text, visits

# Records, words, pages.
WORK = {
    ("sort", "small"): 200_000,
    ("wordcount", "small"): 1_000_000,
    ("sql", "small"): 20_000,
}
# Spark refuses to start with less than 450.
HEAP_MIB = 500
# What Spark's own launcher opens of Java for it, and two tasks at once.
OPENED = ["lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util", "util.concurrent"]
INTERNAL = ["sun.nio.ch", "sun.security.action", "sun.util.calendar"]
SETTINGS = [
    "spark.ui.enabled=false",
    "spark.sql.shuffle.partitions=4",
    "spark.log.level=ERROR",
    "spark.driver.host=127.0.0.1",
    "spark.driver.bindAddress=127.0.0.1",
]


def _java(run: Run) -> list[str]:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise AppError("no Python package pyspark")
    home = Path(spec.origin).parent
    opened = [f"java.{name}" for name in OPENED] + INTERNAL
    opens = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in opened]
    machine = [f"-Xmx{HEAP_MIB}m", f"-Djava.io.tmpdir={run.scratch}", *opens]
    settings = [word for setting in SETTINGS for word in ("--conf", setting)]
    submit = ["org.apache.spark.deploy.SparkSubmit", "--master", "local[2]", *settings]
    return ["java", *machine, "-cp", str(home / "jars" / "*"), *submit]


def _inputs(kind: str, number: int) -> tuple[Path, ...]:
    if kind == "sql":
        return visits(number)
    return (records(number) if kind == "sort" else text(number),)


def _run(kind: str, run: Run) -> Outcome:
    output = run.scratch / "output"
    inputs = _inputs(kind, WORK[kind, run.size])
    job = APPS / "spark" / "job.py"
    environment = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command: list[str | Path] = [*_java(run), job, kind, *inputs, output]
    said = run_reporting(run, command, environment=environment)
    lines = b"".join(part.read_bytes() for part in sorted(output.glob("part-*"))).splitlines(True)
    # Only a sort promises an order.
    answer = digest(lines if kind == "sort" else sorted(lines))
    return Outcome(answer, said.measured_s, said.resident_kib_max)


PACKAGE = PyPi("pyspark", "Apache-2.0", ("java",))
SPARK = [
    App("spark-sort", "sorts records of 100 bytes", PACKAGE, partial(_run, "sort")),
    App("spark-wordcount", "counts the words of a text", PACKAGE, partial(_run, "wordcount")),
    App("spark-sql", "Big Data Benchmark's aggregate and join", PACKAGE, partial(_run, "sql")),
]
