"""The count of the closing line, over the outputs that test runners give."""

import contextlib
import io
import sys
import unittest

import run_tests
from run_tests import CargoOutput, Count, PytestOutput, UnittestOutput


def count(reader, text):
    for line in text.splitlines():
        reader.read(line)
    return reader.count


def quietly(command, reader):
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        return run_tests.run(command, reader), shown.getvalue()


class Cargo(unittest.TestCase):
    def test_binaries_and_doc_tests_add_up(self):
        text = """\
     Running unittests src/lib.rs (target/debug/deps/a-1)
test result: ok. 10 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.01s
   Doc-tests ethermem_units
test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
"""
        self.assertEqual(count(CargoOutput(), text), Count(13, 0, 2))

    def test_a_test_that_says_skipped_did_not_pass(self):
        text = """\
     Running tests/tidy.rs (target/debug/deps/tidy-1)
test a ... ok
SKIPPED: no git
test b ... SKIPPED: no binary
ok
test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s
"""
        self.assertEqual(count(CargoOutput(), text), Count(3, 0, 3))

    def test_a_binary_that_dies_counts_as_one_failure(self):
        text = """\
     Running unittests src/lib.rs (target/debug/deps/a-1)
running 3 tests
error: test failed, to rerun pass `-p a --lib`
     Running tests/b.rs (target/debug/deps/b-1)
test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
error: test failed, to rerun pass `-p a --test b`
error: 2 targets failed:
"""
        self.assertEqual(count(CargoOutput(), text), Count(4, 3, 0))


class Unittest(unittest.TestCase):
    def test_failures_errors_and_skips_are_told_apart(self):
        text = "Ran 9 tests in 0.1s\n\nFAILED (failures=1, errors=2, skipped=3)\n"
        self.assertEqual(count(UnittestOutput(), text), Count(3, 3, 3))
        self.assertEqual(count(UnittestOutput(), "Ran 1 test in 0.1s\n\nOK\n"), Count(1, 0, 0))


class Pytest(unittest.TestCase):
    def test_the_last_line_counts(self):
        text = """\
SKIPPED [1] python/tests/test_sweep.py:7: could not import 'ray'
= 2 failed, 11 passed, 3 skipped, 1 xfailed, 4 warnings, 1 error in 62.25s (0:01:02) =
"""
        self.assertEqual(count(PytestOutput(), text), Count(11, 3, 4))
        self.assertEqual(count(PytestOutput(), "==== 1 passed in 0.01s ====\n"), Count(1, 0, 0))
        self.assertEqual(count(PytestOutput(), "=== no tests ran in 0.01s ===\n"), Count())

    def test_an_environment_that_cannot_be_made_is_one_skipped(self):
        self.assertEqual(count(PytestOutput(), "SKIPPED: Python's test: no\n"), Count(0, 0, 1))


class Run(unittest.TestCase):
    def test_the_output_is_shown_and_the_exit_code_kept(self):
        script = "import sys; print('seen'); print('Ran 2 tests in 1s\\nFAILED (errors=1)');"
        command = [sys.executable, "-c", script + "sys.exit(3)"]
        result, shown = quietly(command, UnittestOutput())
        self.assertEqual(result, (Count(1, 1, 0), 3))
        self.assertIn("\nseen\n", shown)

    def test_a_failure_outside_of_every_test_is_counted(self):
        command = [sys.executable, "-c", "import sys; sys.exit(101)"]
        self.assertEqual(quietly(command, CargoOutput())[0], (Count(0, 1, 0), 101))

    def test_a_program_that_is_missing_is_a_failure(self):
        self.assertEqual(quietly(["no-such-program"], CargoOutput())[0], (Count(0, 1, 0), 127))

    def test_the_closing_line_has_its_form(self):
        self.assertEqual(str(Count(1, 2, 3)), "1 passed, 2 failed, 3 skipped")


if __name__ == "__main__":
    unittest.main()
