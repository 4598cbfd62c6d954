#!/usr/bin/env python3
"""Run every test suite and close with one line: `N passed, N failed, N skipped`.

Output is passed on as it comes. The exit code is that of the first suite that failed. A test that
prints a line `SKIPPED: reason` counts as skipped, though its runner counts it as passed.
"""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

CARGO_RESULT = re.compile(
    r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored; \d+ measured;"
)
# Cargo says this after a test binary with failures, and after one that died without a result.
CARGO_TARGET_FAILED = re.compile(r"^error: (?:test|doctest) failed, to rerun pass ")
CARGO_TARGET = re.compile(r"^\s+(?:Running|Doc-tests) ")
UNITTEST_RAN = re.compile(r"^Ran (\d+) tests? in ")
UNITTEST_RESULT = re.compile(r"^(?:OK|FAILED)(?: \((.*)\))?$")
PYTEST_RESULT = re.compile(r"^=+ ((?:\d+ \w+(?:, )?)+) in [\d.]+s(?: \([\d:]+\))? =+$")
# One thread prints the name of a test, without a newline, before the test prints.
SKIPPED = re.compile(r"^(?:test .* \.\.\. )?SKIPPED: \S")


@dataclass
class Count:
    """Tests by what became of them."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other):
        return Count(
            self.passed + other.passed,
            self.failed + other.failed,
            self.skipped + other.skipped,
        )

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


class CargoOutput:
    """Counts the tests in the output of `cargo test`, line by line."""

    def __init__(self):
        self.count = Count()
        self.failed_in_target = 0
        self.skipped_in_target = 0

    def read(self, line):
        """Take one line into account."""
        if CARGO_TARGET.match(line):
            self.failed_in_target = 0
            self.skipped_in_target = 0
        elif SKIPPED.match(line):
            self.skipped_in_target += 1
        elif result := CARGO_RESULT.match(line):
            passed, failed, ignored = map(int, result.groups())
            # A runner reports as passed a test that said it could not check anything.
            skipped = min(self.skipped_in_target, passed)
            self.skipped_in_target = 0
            self.failed_in_target += failed
            self.count += Count(passed - skipped, failed, ignored + skipped)
        elif CARGO_TARGET_FAILED.match(line) and self.failed_in_target == 0:
            self.count += Count(failed=1)
            self.failed_in_target = 1


class UnittestOutput:
    """Counts the tests in the output of `python3 -m unittest`, line by line."""

    def __init__(self):
        self.count = Count()
        self.ran = 0

    def read(self, line):
        """Take one line into account."""
        if ran := UNITTEST_RAN.match(line):
            self.ran = int(ran.group(1))
        elif result := UNITTEST_RESULT.match(line):
            kinds = dict(re.findall(r"([a-z ]+)=(\d+)", result.group(1) or ""))
            number = {kind.strip(): int(count) for kind, count in kinds.items()}
            failed = sum(
                number.get(kind, 0) for kind in ("failures", "errors", "unexpected successes")
            )
            skipped = number.get("skipped", 0) + number.get("expected failures", 0)
            # An error outside of a test, in a module that cannot be imported, is no test that ran.
            passed = max(self.ran - failed - skipped, 0)
            self.count += Count(passed, failed, skipped)
            self.ran = 0


class PytestOutput:
    """Counts the tests in the output of pytest, line by line; its last line counts them."""

    def __init__(self):
        self.count = Count()

    def read(self, line):
        """Take one line into account."""
        if SKIPPED.match(line):
            self.count += Count(skipped=1)
        elif closing := PYTEST_RESULT.match(line):
            counted = re.findall(r"(\d+) (\w+)", closing.group(1))
            number = {kind.removesuffix("s"): int(count) for count, kind in counted}
            self.count += Count(
                number.get("passed", 0) + number.get("xpassed", 0),
                number.get("failed", 0) + number.get("error", 0),
                number.get("skipped", 0) + number.get("xfailed", 0),
            )


PYTHON_ENV = [sys.executable, "scripts/python_env.py"]
# What `make test` runs. Each is a command and what understands its output.
SUITES = [
    (["cargo", "test", "--workspace", "--locked", "--no-fail-fast"], CargoOutput),
    (
        [sys.executable, "-B", "-m", "unittest", "discover", "-s", "scripts", "-p", "test_*.py"],
        UnittestOutput,
    ),
    ([*PYTHON_ENV, "test", "python", "-m", "pytest"], PytestOutput),
    ([*PYTHON_ENV, "rtl", "python", "-m", "pytest", "-n", "2", "rtl"], PytestOutput),
]


def run(command, output):
    """Run one suite, show what it prints, and return its count and exit code."""
    print(f"$ {' '.join(command)}", flush=True)
    try:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", flush=True)
        return Count(failed=1), 127
    with process:
        for line in process.stdout:
            print(line, end="", flush=True)
            output.read(line.rstrip("\n"))
    count, code = output.count, process.returncode
    if code != 0 and count.failed == 0:
        print(f"{command[0]}: exit code {code} without a failed test: counted as one", flush=True)
        count += Count(failed=1)
    return count, code


def main():
    """Run every suite, even after one failed; the closing line is the last."""
    total, first_code = Count(), 0
    for command, reader in SUITES:
        count, code = run(command, reader())
        total += count
        first_code = first_code or code
    # Killed by a signal: the shell's convention.
    code = 128 - first_code if first_code < 0 else first_code
    if code == 0 and (total.failed > 0 or total.passed == 0):
        print("nothing passed, or a failure was not reported by its runner", flush=True)
        code = 1
    print(total, flush=True)
    return code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
