"""What a run of the tests leaves: a table of its parts, and `out/rtl/tests.json`.

Seconds are those of a clock, and of processors, which do not depend on what else a machine does.
"""

import collections
import json
import resource
import time

from flow import tools

RESULTS = tools.OUT / "tests.json"
OUTCOMES = ("passed", "failed", "skipped")
CPU_SECONDS = "cpu_seconds"
SECONDS = ("seconds", CPU_SECONDS)


def cpu_seconds():
    """What this process has used of processors, and all programs that it ran."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(of.ru_utime + of.ru_stime for of in used)


def part(name):
    """The folder of a bench, or the proof that a test is."""
    path, _, test = name.partition("::")
    folder = path.split("/")[-2]
    return test.removeprefix("test_proof[").removesuffix("]") if folder == "formal" else folder


def parts(tests):
    """For each part how many of its tests ended how, and the seconds they took, the most first."""
    found = collections.defaultdict(lambda: dict.fromkeys((*OUTCOMES, *SECONDS), 0))
    for test in tests:
        row = found[part(test["name"])]
        row[test["outcome"]] += 1
        for name in SECONDS:
            row[name] = round(row[name] + test[name], 2)
    return dict(sorted(found.items(), key=lambda item: -item[1][CPU_SECONDS]))


def table(found):
    """The parts as lines of text."""
    lines = [f"{'part':28}" + "".join(f"{name:>12}" for name in (*OUTCOMES, *SECONDS))]
    for name, row in found.items():
        counts = "".join(f"{row[outcome]:12}" for outcome in OUTCOMES)
        lines.append(f"{name:28}{counts}" + "".join(f"{row[of]:12.1f}" for of in SECONDS))
    return lines


class Results:
    """A plugin of the process that sees all tests, whoever runs them."""

    def __init__(self):
        self.began = time.time()
        self.tests = {}

    def pytest_runtest_logreport(self, report):
        """Takes in a phase of a test: what went wrong in any of them is what became of it."""
        test = self.tests.setdefault(
            report.nodeid, {"outcome": "passed", **dict.fromkeys(SECONDS, 0)}
        )
        test["seconds"] = round(test["seconds"] + report.duration, 3)
        # Said once, with what was run, and again with what comes behind it.
        if report.when == "call":
            test[CPU_SECONDS] = round(dict(report.user_properties).get(CPU_SECONDS, 0), 3)
        if report.outcome != "passed":
            test["outcome"] = report.outcome

    def pytest_terminal_summary(self, terminalreporter):
        """Writes the file and prints the table."""
        tests = [{"name": name, **test} for name, test in self.tests.items()]
        if not tests:
            return
        found = parts(tests)
        whole = {"seconds": round(time.time() - self.began, 1), "parts": found, "tests": tests}
        whole |= {CPU_SECONDS: round(sum(test[CPU_SECONDS] for test in tests), 1)}
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        RESULTS.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
        terminalreporter.section("rtl")
        for line in table(found):
            terminalreporter.write_line(line)
