"""The applications of workloads/apps give their known answers; with APPS=all, each installed one.

By default only the light ones run, so that a test of everything stays short.
"""

import os
import subprocess
import sys
import tomllib
import unittest
from collections import Counter, defaultdict
from pathlib import Path

APPS = Path(__file__).resolve().parent.parent / "workloads" / "apps"
LIGHT = ["numpy-stencil", "numpy-gather", "python-dict"]
NOT_INSTALLED = 2
SECONDS_MAX = 900


def run(*words):
    """Run the command of the applications."""
    return subprocess.run(
        [APPS / "run", *words], capture_output=True, text=True, timeout=SECONDS_MAX, check=False
    )


def bdb_rows(rankings, visits):
    """Answer the queries of the Big Data Benchmark with dictionaries."""
    ranks = {page: int(rank) for page, rank, _ in map(fields, rankings.open())}
    earned, joined = Counter(), defaultdict(lambda: [0, 0])
    for address, page, day, cents in map(fields, visits.open()):
        earned[address[:8]] += int(cents)
        if 100 <= int(day) <= 250 and page in ranks:
            joined[address][0] += int(cents)
            joined[address][1] += ranks[page]
    best = sorted(joined.items(), key=lambda item: (-item[1][0], item[0]))[:1000]
    rows = [f"{subnet},{cents}\n" for subnet, cents in earned.items()]
    rows += [f"{address},{cents},{rank}\n" for address, (cents, rank) in best]
    return [row.encode() for row in rows]


def fields(line):
    """Split a row."""
    return line.rstrip("\n").split(",")


class Answers(unittest.TestCase):
    known = tomllib.loads((APPS / "answers.toml").read_text(encoding="utf-8"))

    def check(self, name, *words):
        ended = run(name, "--size", "small", *words)
        if ended.returncode == NOT_INSTALLED and "--install" in ended.stderr:
            print(f"SKIPPED: {ended.stderr.strip()}", file=sys.stderr, flush=True)
            self.skipTest(ended.stderr.strip())
        self.assertEqual(ended.returncode, 0, ended.stderr)
        said = dict(word.split("=") for word in ended.stdout.split())
        self.assertEqual((said["verdict"], said["answer"]), ("ok", self.known[name]["small"]))

    def test_light_ones(self):
        for name in LIGHT:
            with self.subTest(name):
                self.check(name)

    def test_all_that_are_installed(self):
        if os.environ.get("APPS") != "all":
            self.skipTest("make test-apps runs them all")
        for name in self.known:
            with self.subTest(name):
                self.check(name)

    def test_one_command_in_front(self):
        self.check("numpy-gather", "--under", "env APPS_TEST=1")

    def test_spark_agrees_with_plain_python(self):
        if os.environ.get("APPS") != "all":
            self.skipTest("make test-apps makes the data")
        sys.path.insert(0, str(APPS.parent))
        from apps import data  # noqa: PLC0415
        from apps.app import digest  # noqa: PLC0415
        from apps.spark.app import WORK  # noqa: PLC0415

        records = data.records(WORK["sort", "small"]).read_bytes().splitlines(keepends=True)
        self.assertEqual(digest(sorted(records)), self.known["spark-sort"]["small"])
        words = Counter(data.text(WORK["wordcount", "small"]).read_text().split())
        counts = sorted(f"{word},{count}\n".encode() for word, count in words.items())
        self.assertEqual(digest(counts), self.known["spark-wordcount"]["small"])
        rows = sorted(bdb_rows(*data.visits(WORK["sql", "small"])))
        self.assertEqual(digest(rows), self.known["spark-sql"]["small"])

    def test_sort_agrees_with_plain_python(self):
        if os.environ.get("APPS") != "all":
            self.skipTest("make test-apps makes the data")
        sys.path.insert(0, str(APPS.parent))
        from apps import data  # noqa: PLC0415
        from apps.app import digest  # noqa: PLC0415
        from apps.text.app import RECORDS  # noqa: PLC0415

        records = data.records(RECORDS["small"]).read_bytes().splitlines(keepends=True)
        self.assertEqual(digest([b"".join(sorted(records))]), self.known["sort"]["small"])

    def test_two_engines_agree(self):
        self.assertEqual(self.known["sqlite"], self.known["duckdb"])
        self.assertEqual(self.known["graph-pagerank"], self.known["timely-pagerank"])


class BadInput(unittest.TestCase):
    def check(self, words, expected):
        ended = run(*words)
        self.assertEqual(ended.returncode, 2, ended.stderr)
        self.assertIn(expected, ended.stderr)

    def test_unknown_names_and_sizes(self):
        self.check(["postgres"], "no application 'postgres'; there are redis, ")
        self.check(["redis", "--size", "huge"], "invalid choice: 'huge'")
        self.check([], "give one of NAME, --list and --install NAME")
        self.check(["redis", "--timeout-s", "0"], "a number of seconds above 0")

    def test_a_command_that_is_not_there(self):
        ended = run("numpy-gather", "--under", "no-such-command")
        self.assertIn(ended.returncode, [1, NOT_INSTALLED])
        self.assertEqual(len(ended.stderr.strip().splitlines()), 1)


if __name__ == "__main__":
    unittest.main()
