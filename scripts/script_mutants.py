#!/usr/bin/env python3
"""Break the test runner in each way of a list, and check that its own tests detect it.

    python3 scripts/script_mutants.py [NUMBER...]

The exit code is 1 if one survives, or if the text to be broken is missing.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Tests of a broken watch may hang; their processes are killed with them.
LIMIT_S = 60
# A file, its text, and the replacement.
MUTANTS = [
    ("run_tests.py", '"doc", "cargo test', '"docs", "cargo test'),
    ("run_tests.py", '    pytest("conformance", "test", "conformance", limit_s=2400),\n', ""),
    ("run_tests.py", '"--locked", "--no-fail-fast"]', '"--locked"]'),
    ("run_tests.py", "--doc --no-fail-fast", "--doc"),
    ("run_tests.py", "model/Cargo.toml --locked", "model/Cargo.toml"),
    ("run_tests.py", "set -o pipefail; ", ""),
    ("run_tests.py", "2>&1 | tee", "| tee"),
    ("run_tests.py", '"-n", "2", "rtl"', '"-n", "2", "python"'),
    ("run_tests.py", "limit_s=2400,\n        runner", "limit_s=0,\n        runner"),
    ("run_tests.py", 'runner="cargo-nextest"', 'runner="nextest"'),
    ("run_tests.py", "stuck_s=540", "stuck_s=5400"),
    ("run_tests.py", "read=junit.read_libtest", "read=junit.read"),
    ("run_tests.py", "code = code or 1\n    elif", "code = code\n    elif"),
    ("run_tests.py", "        counted += Count(failed=1)\n", "        pass\n"),
    ("run_tests.py", "elif code != 0:", "elif code == 1:"),
    ("run_tests.py", "elif len(ended.cases) < fewest:", "elif len(ended.cases) < 0:"),
    ("run_tests.py", "elif len(ended.cases) < fewest:", "elif len(ended.cases) <= fewest:"),
    ("run_tests.py", "counted + Count(failed=1), 1", "counted + Count(failed=1), code"),
    ("run_tests.py", "first_code = first_code or code", "first_code = code"),
    ("run_tests.py", "return len(wrong) if in_ci else 0", "return 0"),
    ("run_tests.py", "return len(wrong) if in_ci else 0", "return len(wrong)"),
    ("run_tests.py", "or total.passed == 0", "or False"),
    ("run_tests.py", "(1 if wrong or", "(1 if"),
    ("run_tests.py", "total += Count(failed=wrong)", "pass"),
    ("run_tests.py", "cases, code = [], code or 1", "cases, code = [], code"),
    ("run_tests.py", "except (OSError, ParseError)", "except OSError"),
    ("run_tests.py", "suite.report.unlink(missing_ok=True)", "pass"),
    ("run_tests.py", "return first_code\n\n\ndef main", "return 0\n\n\ndef main"),
    ("run_tests.py", " + junit.skips_of_log(lint_log)", ""),
    ("run_tests.py", "set(asked.suite) - set(fewest)", "set()"),
    ("run_tests.py", "asked.suite or fewest", "asked.suite"),
    ("run_tests.py", "asked.suite or fewest", "fewest"),
    ("run_tests.py", "lint_log, in_ci=", '"", in_ci='),
    ("run_tests.py", 'in_ci=bool(os.environ.get("CI"))', "in_ci=False"),
    ("run_tests.py", "sys.exit(main())", "main()"),
    ("run_tests.py", "suite.limit_s, suite.runner", "1e9, suite.runner"),
    ("run_tests.py", "suite.runner, suite.stuck_s)", "None, 0)"),
    ("junit.py", "and self.reason in case.reason", "and True"),
    ("junit.py", "and (self.ci or not in_ci)", "and True"),
    ("junit.py", "fnmatchcase(case.name, self.test)", "True"),
    ("junit.py", '("failure", "error")', '("failure",)'),
    ("junit.py", 'for kind in ("system-out", "system-err")', 'for kind in ("system-out",)'),
    ("junit.py", 'case.outcome == "skipped" and not any', 'case.outcome == "skipped" and any'),
    ("junit.py", 'skip.get("message", "")', '""'),
    ("junit.py", '"FAILED": "failed"', '"FAILED": "passed"'),
    ("junit.py", "self.failed + other.failed", "self.failed"),
    ("junit.py", ", re.MULTILINE)\n\n# A test that Rust", ")\n\n# A test that Rust"),
    ("watch.py", "return 128 - code if code < 0 else code", "return code"),
    ("watch.py", "return OVER_LIMIT", "return 0"),
    ("watch.py", "return 127", "return 0"),
    ("watch.py", "left = [root, *descendants(root)]", "left = [root]"),
    ("watch.py", "show_stacks(descendants(self.process.pid))", "pass"),
    ("watch.py", "self.shown.add(test)", "pass"),
    ("watch.py", "> self.stuck_s", "> 1e9"),
    ("watch.py", "> self.stuck_s", "> 0"),
    ("watch.py", "started_by == self.runner and", ""),
    ("watch.py", "show_stacks([test, *descendants(test)])", "pass"),
]


def outcome(folder):
    """Run the tests of a copy; return whether they passed, failed, or hung."""
    process = subprocess.Popen(
        [sys.executable, "-B", "-m", "unittest", "-f", "test_run_tests"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        code = process.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        code = None
    # The loop also finds processes that were started during the previous pass.
    for _ in range(2):
        end_within(folder.parent)
        process.wait()
    return "hung" if code is None else "passed" if code == 0 else "failed"


def end_within(folder):
    """End every process that works in a folder, even one with a session of its own."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").resolve().is_relative_to(folder):
                os.kill(int(process.name), signal.SIGKILL)
        except OSError:
            continue


def survives(file, right, wrong):
    """Break one file of a copy; return whether no test detects it."""
    text = (ROOT / "scripts" / file).read_text(encoding="utf-8")
    if right not in text:
        print(f"{file}: {right!r} is not there", flush=True)
        return True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        for entry in ROOT.iterdir():
            if entry.name not in ("scripts", "target", ".git"):
                (folder / entry.name).symlink_to(entry)
        shutil.copytree(ROOT / "scripts", folder / "scripts")
        (folder / "scripts" / file).write_text(text.replace(right, wrong, 1), encoding="utf-8")
        is_alive = outcome(folder / "scripts") == "passed"
    if is_alive:
        print(f"{file}: {right!r} as {wrong!r} survives", flush=True)
    return is_alive


def main():
    """Try the mutants with the given numbers, or all."""
    asked = [MUTANTS[int(word)] for word in sys.argv[1:]] or MUTANTS
    alive = sum(survives(*mutant) for mutant in asked)
    print(f"{len(asked)} mutants of scripts, {alive} survive")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
