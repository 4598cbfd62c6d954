"""A dictionary of strings in plain Python: small objects, met in an order without locality."""

from ..app import APPS, App, Debian, Outcome, Run, run_reporting

# Entries of the dictionary, and operations on it.
WORK = {"small": (360_000, 400_000)}


def _run(run: Run) -> Outcome:
    program = APPS / "strings" / "program.py"
    return run_reporting(run, ["python3", program, *map(str, WORK[run.size])])


PACKAGE = Debian("python3", "PSF-2.0", "python3")
STRINGS = [App("python-dict", "a dictionary of strings in plain Python", PACKAGE, _run)]
