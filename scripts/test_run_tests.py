"""The verdict on all tests: counts, exit codes, expected skips, time limits."""

import contextlib
import dataclasses
import io
import os
import subprocess
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path
from unittest import mock

import junit
import run_tests
import watch
from junit import Case, Count, ExpectedSkip
from run_tests import Ended, Suite

NEXTEST = """<?xml version="1.0"?>
<testsuites name="nextest-run" tests="5" failures="1">
 <testsuite name="a" tests="5">
  <testcase name="tests::sound" classname="a" time="1.5"><system-out>running 1 test
test tests::sound ... ok</system-out></testcase>
  <testcase name="tests::wrong" classname="a"><failure message="no"/>
   <system-err>SKIPPED: not this one</system-err></testcase>
  <testcase name="tests::silent" classname="a"><system-err>
SKIPPED: no root
</system-err></testcase>
  <testcase name="tests::named" classname="a"><system-out>test tests::named ... SKIPPED: no tshark
</system-out></testcase>
  <testcase name="tests::quotes" classname="a"><system-out>it printed "SKIPPED: x"</system-out>
  </testcase>
 </testsuite>
</testsuites>
"""
PYTEST = """<testsuites><testsuite name="pytest">
 <testcase classname="tests.test_a" name="test_sound" time="0.5"/>
 <testcase classname="tests.test_a" name="test_wrong"><failure message="assert 0"/></testcase>
 <testcase classname="tests.test_a" name="test_setup"><error message="no fixture"/></testcase>
 <testcase classname="tests.test_a" name="test_ray"><skipped message="no ray"/></testcase>
</testsuite></testsuites>
"""
LIBTEST = """running 3 tests
test crates/a/src/lib.rs - A (line 9) ... ok
test crates/a/src/lib.rs - B (line 30) ... FAILED
test crates/a/src/lib.rs - C (line 40) ... ignored
test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out
"""
SOUND = [Case("a::b", "passed")]


def quietly(call, *arguments, **named):
    """Call a function; return the result and the output."""
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        return call(*arguments, **named), shown.getvalue()


def read(text, reader=junit.read):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report"
        path.write_text(text)
        return reader(path)


def suite(command, report="no-such-folder-of-reports/report.xml", limit_s=60):
    return Suite("a", command, Path(tempfile.gettempdir()) / report, limit_s)


def close(ended, expected=(), **named):
    """Close a run of suites, each of which must have one test."""
    fewest = dict.fromkeys((one.suite.name for one in ended), 1)
    code, shown = quietly(run_tests.close, ended, fewest, list(expected), **named)
    return code, shown.splitlines()[-1], shown


class Reports(unittest.TestCase):
    def test_nextest_says_what_failed_and_tests_say_that_they_were_skipped(self):
        cases = read(NEXTEST)
        outcomes = [(case.name.rpartition("::")[2], case.outcome, case.reason) for case in cases]
        self.assertEqual(
            outcomes,
            [
                ("sound", "passed", ""),
                ("wrong", "failed", ""),
                ("silent", "skipped", "no root"),
                ("named", "skipped", "no tshark"),
                ("quotes", "passed", ""),
            ],
        )
        self.assertEqual(cases[0].name, "a::tests::sound")
        self.assertEqual(cases[0].seconds, 1.5)

    def test_pytest_tells_failures_errors_and_skips_apart(self):
        cases = read(PYTEST)
        self.assertEqual(
            [case.outcome for case in cases], ["passed", "failed", "failed", "skipped"]
        )
        self.assertEqual(cases[3].reason, "no ray")
        self.assertEqual(junit.count(cases), Count(1, 2, 1))

    def test_documentation_tests_are_read_from_what_cargo_prints(self):
        self.assertEqual(junit.count(read(LIBTEST, junit.read_libtest)), Count(1, 1, 1))

    def test_the_closing_line_has_its_form(self):
        self.assertEqual(str(Count(1, 2, 3)), "1 passed, 2 failed, 3 skipped")


class Skips(unittest.TestCase):
    root = Case("a::needs_root", "skipped", "namespaces need root")
    listed = ExpectedSkip("a::needs_*", "need root", ci=False)

    def test_an_unlisted_skip_fails_a_server_and_is_told_elsewhere(self):
        ended = [Ended(suite([]), 0, [*SOUND, self.root])]
        code, closing, _ = close(ended, in_ci=True)
        self.assertEqual((code, closing), (1, "1 passed, 1 failed, 1 skipped"))
        code, closing, shown = close(ended)
        self.assertEqual((code, closing), (0, "1 passed, 0 failed, 1 skipped"))
        self.assertIn("a::needs_root: namespaces need root (not in expected_tests.toml)", shown)

    def test_what_a_server_may_not_skip_fails_there_alone(self):
        ended = [Ended(suite([]), 0, [*SOUND, self.root])]
        self.assertEqual(close(ended, [self.listed], in_ci=True)[0], 1)
        code, _, shown = close(ended, [self.listed])
        self.assertEqual(code, 0)
        self.assertNotIn("not in expected", shown)

    def test_an_entry_is_of_one_test_and_one_reason(self):
        anywhere = ExpectedSkip("a::needs_*", "need root", ci=True)
        self.assertEqual(junit.unexpected([self.root], [anywhere], True), [])
        for other in (
            Case("b::needs_root", "skipped", "namespaces need root"),
            Case("a::needs_root", "skipped", "another reason"),
        ):
            self.assertEqual(junit.unexpected([other], [anywhere], False), [other])

    def test_what_lint_skips_counts_too(self):
        log = "cargo fmt\nSKIPPED: licences: no cargo-deny\nset -x\n"
        self.assertEqual(close([Ended(suite([]), 0, SOUND)], lint_log=log, in_ci=True)[0], 1)
        self.assertEqual(close([Ended(suite([]), 0, SOUND)], lint_log=log)[0], 0)


class Verdict(unittest.TestCase):
    def test_the_first_exit_code_is_kept_and_later_suites_count(self):
        ended = [
            Ended(suite([]), 0, SOUND),
            Ended(suite([]), 101, [Case("b", "failed")]),
            Ended(suite([]), 3, [Case("c", "failed"), Case("d", "passed")]),
        ]
        self.assertEqual(close(ended)[:2], (101, "2 passed, 2 failed, 0 skipped"))

    def test_an_exit_code_without_a_failed_test_is_one_failure(self):
        code, closing, _ = close([Ended(suite([]), 101, SOUND)])
        self.assertEqual((code, closing), (101, "1 passed, 1 failed, 0 skipped"))

    def test_a_failed_test_fails_though_its_runner_ended_well(self):
        code, closing, _ = close([Ended(suite([]), 0, [*SOUND, Case("b", "failed")])])
        self.assertEqual((code, closing), (1, "1 passed, 1 failed, 0 skipped"))

    def test_a_suite_with_fewer_tests_than_it_has_fails(self):
        ended = [Ended(suite([]), 0, SOUND), Ended(suite([]), 0, [])]
        code, closing, shown = close(ended)
        self.assertEqual((code, closing), (1, "1 passed, 1 failed, 0 skipped"))
        self.assertIn("0 tests ran: must be at least 1", shown)

    def test_where_nothing_passed_nothing_is_well(self):
        skipped = [Case("a", "skipped", "no root")]
        self.assertEqual(close([Ended(suite([]), 0, skipped)])[0], 1)


class Run(unittest.TestCase):
    def test_the_exit_code_and_the_report_are_those_of_the_command(self):
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "deep" / "report.xml"
            script = "import sys; open(sys.argv[1], 'w').write(sys.argv[2]); sys.exit(3)"
            command = [sys.executable, "-c", script, report, PYTEST]
            ended, _ = quietly(run_tests.run, Suite("a", command, report, 60))
            self.assertEqual((ended.code, junit.count(ended.cases)), (3, Count(1, 2, 1)))

            # The report of an earlier run does not count.
            ended, shown = quietly(run_tests.run, Suite("a", ["true"], report, 60))
            self.assertEqual((ended.code, ended.cases), (1, []))
            self.assertIn("a: no report of its tests", shown)

    def test_a_report_that_was_cut_off_is_a_failure(self):
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.xml"
            command = ["cp", os.devnull, report]
            ended, _ = quietly(run_tests.run, Suite("a", command, report, 60))
            self.assertEqual((ended.code, ended.cases), (1, []))

    def test_a_program_that_is_missing_is_a_failure(self):
        ended, _ = quietly(run_tests.run, suite(["no-such-program"]))
        self.assertEqual(ended.code, 127)

    def test_an_end_by_a_signal_is_told_as_the_shell_does(self):
        code, _ = quietly(watch.run, ["sh", "-c", "kill -9 $$"], ".", 60)
        self.assertEqual(code, 137)

    def test_what_hangs_is_killed_whole_with_its_stacks(self):
        with tempfile.TemporaryDirectory() as folder:
            pids = Path(folder) / "pids"
            sleeps = f"sleep 1000 & echo $! >> {pids}; setsid sleep 1000 & echo $! >> {pids}; wait"
            code, shown = quietly(watch.run, ["sh", "-c", sleeps], ".", 1)
            left = [int(pid) for pid in pids.read_text().split()]
        self.assertEqual(code, watch.OVER_LIMIT)
        self.assertEqual(shown.count(": sleep 1000"), 2)
        self.assertEqual(len(left), 2)
        self.assertEqual([watch.name(pid) for pid in left if self.runs(pid)], [])

    def runs(self, pid):
        """Return whether a process exists and is not a zombie."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] != "Z"

    def stacks_of(self, command, runner, stuck_s):
        """Run a suite; return its exit code and its output."""
        patched = mock.patch.object(watch, "LOOK_S", 0.2)
        patched.start()
        self.addCleanup(patched.stop)
        stuck = dataclasses.replace(suite(command), runner=runner, stuck_s=stuck_s)
        ended, shown = quietly(run_tests.run, stuck)
        return ended.code, shown

    def test_a_test_that_is_stuck_is_shown_once_before_its_end(self):
        code, shown = self.stacks_of(["sh", "-c", "sleep 3; exit 5"], "sh", 1)
        self.assertEqual(code, 5)
        self.assertEqual(shown.count("stacks of a test"), 1)
        self.assertEqual(shown.count(": sleep 3"), 1)

    def test_no_stack_is_shown_of_a_young_test_or_of_what_is_no_test(self):
        for runner, stuck_s in (("sh", 500), ("another", 0)):
            code, shown = self.stacks_of(["sh", "-c", "sleep 1; exit 5"], runner, stuck_s)
            self.assertEqual(code, 5)
            self.assertNotIn("stacks", shown)


class Main(unittest.TestCase):
    """`main` with suites of its own, each of which has one passing test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        expected = self.folder / "expected.toml"
        expected.write_text("[fewest]\none = 1\nother = 1\n")
        self.patch(run_tests, "EXPECTED", expected)
        self.patch(run_tests, "TARGET", self.folder)
        say = "echo test a::b ... ok"
        self.suites = [run_tests.cargo_test(name, say, limit_s=60) for name in ("one", "other")]
        self.patch(run_tests, "SUITES", self.suites)
        self.patch(os, "environ", {key: word for key, word in os.environ.items() if key != "CI"})

    def patch(self, where, name, value):
        patched = mock.patch.object(where, name, value)
        patched.start()
        self.addCleanup(patched.stop)

    def main(self, *arguments):
        code, shown = quietly(run_tests.main, [str(word) for word in arguments])
        return code, shown.splitlines()[-1]

    def test_suites_that_are_named_run_alone_and_all_where_none_is(self):
        self.assertEqual(self.main(), (0, "2 passed, 0 failed, 0 skipped"))
        self.assertEqual(self.main("other"), (0, "1 passed, 0 failed, 0 skipped"))

    def test_a_log_of_lint_is_judged_where_the_server_is(self):
        log = self.folder / "lint.log"
        log.write_text("SKIPPED: no cargo-deny\n")
        there = (0, "1 passed, 0 failed, 0 skipped")
        self.assertEqual(self.main("--lint-log", log, "one"), there)
        os.environ["CI"] = "true"
        self.assertEqual(self.main("--lint-log", log, "one"), (1, "1 passed, 1 failed, 0 skipped"))
        self.assertEqual(self.main("one")[0], 0)

    def test_a_suite_of_cargo_has_its_exit_code_and_what_it_printed_on_either_stream(self):
        says = "sh -c 'echo test a ... ok; echo test b ... FAILED >&2; exit 3'"
        ended, _ = quietly(run_tests.run, run_tests.cargo_test("a", says, limit_s=60))
        self.assertEqual((ended.code, junit.count(ended.cases)), (3, Count(1, 1, 0)))

    def test_the_limit_of_a_suite_is_the_limit_of_its_command(self):
        hangs = suite(["sleep", "1000"], limit_s=1)
        self.assertEqual(quietly(run_tests.run, hangs)[0].code, watch.OVER_LIMIT)

    def test_the_program_ends_with_the_exit_code_of_the_suites(self):
        program = Path(run_tests.__file__)
        ended = subprocess.run(
            [sys.executable, "-B", program, "doc"],
            env={"PATH": str(self.folder), "CARGO_TARGET_DIR": str(self.folder)},
            capture_output=True,
            check=False,
            text=True,
        )
        self.assertEqual(ended.stdout.splitlines()[-1], "0 passed, 1 failed, 0 skipped")
        self.assertEqual(ended.returncode, 127)


class Suites(unittest.TestCase):
    """The suites of `make test` match this repository."""

    def test_every_suite_has_a_least_number_of_tests(self):
        fewest, _ = junit.load_expected(run_tests.EXPECTED)
        self.assertEqual([one.name for one in run_tests.SUITES], list(fewest))
        self.assertTrue(all(number > 0 for number in fewest.values()))

    def test_every_folder_of_tests_belongs_to_a_suite(self):
        commands = [" ".join(map(str, one.command)) for one in run_tests.SUITES]
        folders = {
            path.relative_to(run_tests.ROOT).parts[0]
            for pattern in ("*/test_*.py", "*/*/test_*.py", "*/*/*/test_*.py")
            for path in run_tests.ROOT.glob(pattern)
            if not path.relative_to(run_tests.ROOT).parts[0].startswith((".", "target"))
        }
        self.assertEqual(folders, {"conformance", "python", "rtl", "scripts"})
        pytests = [one.command for one in run_tests.SUITES if "pytest" in one.command]
        self.assertEqual({Path(command[-1]).parts[0] for command in pytests}, folders)
        self.assertTrue(any("nextest run --workspace" in command for command in commands))
        self.assertTrue(any("--workspace" in one and "--doc" in one for one in commands))

    def test_no_failure_hides_another(self):
        for one in run_tests.SUITES:
            command = " ".join(map(str, one.command))
            if "cargo" in command:
                self.assertIn("--no-fail-fast", command)
                self.assertIn("--locked", command)
            else:
                self.assertNotRegex(command, r" -x\b|--exitfirst|--maxfail")

    def test_stacks_of_a_stuck_test_are_shown_before_its_runner_ends_it(self):
        config = tomllib.loads((run_tests.ROOT / ".config" / "nextest.toml").read_text())
        slow = config["profile"]["default"]["slow-timeout"]
        ends_s = int(slow["period"].removesuffix("s")) * slow["terminate-after"]
        for one in run_tests.SUITES:
            self.assertGreaterEqual(one.limit_s, 600, one.name)
            if "nextest" in one.command:
                # Cargo becomes the program with its name.
                at = one.command.index("nextest")
                self.assertEqual(one.runner, "-".join(one.command[at - 1 : at + 1]))
                self.assertTrue(0 < one.stuck_s < ends_s < one.limit_s)

    def test_a_suite_that_is_not_there_is_refused(self):
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
            run_tests.main(["no-such-suite"])


if __name__ == "__main__":
    unittest.main()
