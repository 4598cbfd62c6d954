#!/usr/bin/env python3
"""Run every test suite and close with one line: `N passed, N failed, N skipped`.

    python3 scripts/run_tests.py [--lint-log FILE] [SUITE...]

The runners are cargo-nextest, `cargo test --doc` and pytest. The outcome of each test is read from
the JUnit files that they write. The exit code is that of the first suite that failed. A suite
fails if it ran fewer tests than its minimum. On a continuous integration server, where the
variable CI is set, a skip that `expected_tests.toml` does not list fails, too, also one in the log
of `make lint`.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree.ElementTree import ParseError

import junit
import watch
from junit import Count

ROOT = Path(__file__).resolve().parent.parent
EXPECTED = Path(__file__).with_name("expected_tests.toml")
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PYTHON_ENV = [sys.executable, "scripts/python_env.py"]


@dataclass(frozen=True)
class Suite:
    """A command that runs tests, and the file of their outcomes."""

    name: str
    command: list
    report: Path
    limit_s: int
    # The program that starts a process per test, and the age at which such a process is stuck.
    runner: str | None = None
    stuck_s: int = 0
    read: Callable[[Path], list] = junit.read


@dataclass
class Ended:
    """A suite that has ended: its exit code, its tests, and how long it took."""

    suite: Suite
    code: int
    cases: list = field(default_factory=list)
    seconds: float = 0.0


def pytest(name, group, *arguments, limit_s):
    """Return a suite of pytest, in the environment of a dependency group."""
    report = TARGET / "reports" / f"{name}.xml"
    command = [*PYTHON_ENV, group, "python", "-m", "pytest", f"--junitxml={report}", *arguments]
    return Suite(name, command, report, limit_s)


def cargo_test(name, command, limit_s):
    """Return a suite of Cargo's own runner, whose only report is its output."""
    report = TARGET / "reports" / f"{name}.log"
    words = ["bash", "-c", f"set -o pipefail; {command} 2>&1 | tee {report}"]
    return Suite(name, words, report, limit_s, read=junit.read_libtest)


NEXTEST = ["cargo", "nextest", "run", "--workspace", "--locked", "--no-fail-fast"]
# The suites of `make test`.
SUITES = [
    Suite(
        "rust",
        [*PYTHON_ENV, "cargo", *NEXTEST],
        ROOT / "target" / "nextest" / "default" / "junit.xml",
        limit_s=2400,
        runner="cargo-nextest",
        stuck_s=540,
    ),
    cargo_test("doc", "cargo test --workspace --locked --doc --no-fail-fast", limit_s=900),
    # The model check tries every interleaving of threads in the rules of waiting, and in rings.
    cargo_test(
        "model", "cargo test --manifest-path model/Cargo.toml --locked --no-fail-fast", limit_s=900
    ),
    pytest("scripts", "test", "scripts", limit_s=600),
    pytest("python", "test", "python/tests", limit_s=1200),
    pytest("conformance", "test", "conformance", limit_s=2400),
    pytest("rtl", "rtl", "-n", "2", "rtl", limit_s=2400),
]


def run(suite):
    """Run one suite and read the outcomes of its tests."""
    suite.report.unlink(missing_ok=True)
    suite.report.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    code = watch.run(suite.command, ROOT, suite.limit_s, suite.runner, suite.stuck_s)
    try:
        cases = suite.read(suite.report)
    except (OSError, ParseError) as error:
        print(f"{suite.name}: no report of its tests: {error}", flush=True)
        cases, code = [], code or 1
    return Ended(suite, code, cases, time.monotonic() - began)


def judge(ended, fewest):
    """Return the count and the exit code of a suite; a failure outside of a test counts as one."""
    name, counted, code = ended.suite.name, junit.count(ended.cases), ended.code
    if counted.failed > 0:
        code = code or 1
    elif code != 0:
        print(f"{name}: exit code {code} without a failed test: counted as one", flush=True)
        counted += Count(failed=1)
    elif len(ended.cases) < fewest:
        print(f"{name}: {len(ended.cases)} tests ran: must be at least {fewest}", flush=True)
        counted, code = counted + Count(failed=1), 1
    return counted, code


def judge_skips(cases, expected, in_ci):
    """Print every skip; return how many of them are failures."""
    wrong = junit.unexpected(cases, expected, in_ci)
    for case in cases:
        if case.outcome == "skipped":
            listed = "" if case not in wrong else " (not in expected_tests.toml)"
            print(f"skipped: {case.name}: {case.reason}{listed}", flush=True)
    return len(wrong) if in_ci else 0


def show_times(ended):
    """Print the time of each suite, and the slowest tests."""
    for one in ended:
        print(f"{one.suite.name}: {one.seconds:.0f} s", flush=True)
    slowest = sorted((case for one in ended for case in one.cases), key=lambda case: -case.seconds)
    for case in slowest[:15]:
        print(f"  {case.seconds:6.1f} s  {case.name}", flush=True)


def close(ended, fewest, expected, lint_log="", in_ci=False):
    """Print the verdict on suites that have ended; return the exit code."""
    total, first_code = Count(), 0
    for one in ended:
        counted, code = judge(one, fewest[one.suite.name])
        total += counted
        first_code = first_code or code
    show_times(ended)
    cases = [case for one in ended for case in one.cases] + junit.skips_of_log(lint_log)
    wrong = judge_skips(cases, expected, in_ci)
    total += Count(failed=wrong)
    first_code = first_code or (1 if wrong or total.passed == 0 else 0)
    print(total, flush=True)
    return first_code


def main(arguments=None):
    """Run the named suites, or all; the closing line is the last."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lint-log", type=Path, help="what `make lint` printed")
    parser.add_argument("suite", nargs="*", help=", ".join(suite.name for suite in SUITES))
    asked = parser.parse_args(arguments)
    fewest, expected = junit.load_expected(EXPECTED)
    if unknown := set(asked.suite) - set(fewest):
        parser.error(f"suite {sorted(unknown)[0]}: must be one of {', '.join(fewest)}")
    lint_log = asked.lint_log.read_text(errors="replace") if asked.lint_log else ""
    ended = [run(suite) for suite in SUITES if suite.name in (asked.suite or fewest)]
    return close(ended, fewest, expected, lint_log, in_ci=bool(os.environ.get("CI")))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
