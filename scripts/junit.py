"""Outcomes of tests, from the JUnit files that nextest and pytest write."""

import re
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from xml.etree import ElementTree

# A test that cannot check anything on this machine prints this line and passes. The harness may
# have printed the test's name before, without a newline.
SKIPPED = re.compile(r"^(?:test .* \.\.\. )?SKIPPED: (\S.*)$", re.MULTILINE)

# A test that Rust's harness names, with its outcome.
LIBTEST = re.compile(r"^test (\S.*) \.\.\. (ok|FAILED|ignored.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """One test and its outcome: `passed`, `failed` or `skipped`."""

    name: str
    outcome: str
    reason: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class ExpectedSkip:
    """A known skip: a pattern of test names, a part of its reason, and whether CI may have it."""

    test: str
    reason: str
    ci: bool

    def covers(self, case, in_ci):
        """Return whether `case` may be skipped here for the reason that it gave."""
        return (
            fnmatchcase(case.name, self.test)
            and self.reason in case.reason
            and (self.ci or not in_ci)
        )


@dataclass
class Count:
    """Numbers of tests by outcome."""

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


def count(cases):
    """Count the cases by outcome."""
    outcomes = [case.outcome for case in cases]
    return Count(*(outcomes.count(outcome) for outcome in ("passed", "failed", "skipped")))


def printed(element):
    """Return a test's output."""
    return "\n".join(
        text.text or "" for kind in ("system-out", "system-err") for text in element.iter(kind)
    )


def outcome(element):
    """Return the outcome of one `testcase`, with the reason of a skip."""
    if any(element.find(kind) is not None for kind in ("failure", "error")):
        return "failed", ""
    skip = element.find("skipped")
    if skip is not None:
        return "skipped", skip.get("message", "")
    said = SKIPPED.search(printed(element))
    return ("skipped", said.group(1)) if said else ("passed", "")


def read(path):
    """Read the cases of a JUnit file; raises `OSError` or `ParseError` for an invalid file."""
    cases = []
    for element in ElementTree.parse(path).iter("testcase"):
        name = f"{element.get('classname', '')}::{element.get('name', '')}"
        cases.append(Case(name, *outcome(element), seconds=float(element.get("time", 0))))
    return cases


def read_libtest(path):
    """Read the cases in a log of `cargo test`; raises `OSError` for an unreadable file."""
    outcome_of = {"ok": "passed", "FAILED": "failed"}
    return [
        Case(name, outcome_of.get(result, "skipped"), result)
        for name, result in LIBTEST.findall(path.read_text(encoding="utf-8", errors="replace"))
    ]


def skips_of_log(text):
    """Return the skips in a log of lines, of checks that are not tests."""
    return [Case("lint", "skipped", found.group(1)) for found in SKIPPED.finditer(text)]


def unexpected(cases, expected, in_ci):
    """Return the skipped cases that no entry of the list covers."""
    return [
        case
        for case in cases
        if case.outcome == "skipped" and not any(entry.covers(case, in_ci) for entry in expected)
    ]


def load_expected(path):
    """Read `expected_tests.toml`: the minimum number of tests per suite, and the expected skips."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return table["fewest"], [ExpectedSkip(**entry) for entry in table.get("skip", [])]
