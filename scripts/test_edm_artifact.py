"""The script for the artifact's numbers, as far as it runs without the artifact."""

import contextlib
import io
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import edm_artifact
from edm_artifact import EDITS, ROWS, Edit, Row, WrongError, edited, measured, messages, table


class Edits(unittest.TestCase):
    def test_only_the_words_on_the_line_change(self):
        text = edited("a = 1;\nb = 1;\n", "x.c", [Edit(2, "1", "2"), Edit(2, "b", "c")])
        self.assertEqual(text, "a = 1;\nc = 2;\n")

    def test_another_source_is_refused_with_its_line(self):
        for found in ("b = 3;", "b = 1 + 1;"):
            with self.assertRaisesRegex(WrongError, r"^x\.c:2 has '.*'; it must have '1' once$"):
                edited(f"a = 1;\n{found}\n", "x.c", [Edit(2, "1", "2")])

    def test_a_source_that_is_shorter_is_refused(self):
        with self.assertRaisesRegex(WrongError, r"^x\.c:7 has ''"):
            edited("a = 1;\n", "x.c", [Edit(7, "1", "2")])

    def test_every_change_is_in_a_row_and_every_row_has_changes_that_are_known(self):
        used = {(row.fabric, change) for row in ROWS for change in row.changes}
        known = {(fabric, change) for fabric, changes in EDITS.items() for change in changes}
        self.assertEqual(used, known)
        self.assertEqual(len({row.name for row in ROWS}), len(ROWS))


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = Path(folder.name)

    def program(self, text):
        path = self.out / "simulator"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    def test_messages_are_reads_and_writes_with_a_seed(self):
        raw = self.out / "a.raw.csv"
        raw.write_text("".join(f"{i},1,2,100,{i}e-9\n" for i in range(1100)))
        first = messages("a", 1, raw).read_text()
        self.assertEqual(messages("a", 1, raw).read_text(), first)
        self.assertNotEqual(messages("a", 2, raw).read_text(), first)
        rows = [line.split(",") for line in first.splitlines()]
        reads = [row for row in rows if row[1] == "1"]
        self.assertTrue(430 < len(reads) < 570, len(reads))
        self.assertTrue(all(row[4:6] == ["16", "100"] for row in reads))
        self.assertTrue(all(row[4:6] == ["100", "-1"] for row in rows if row[1] == "3"))
        # 64 bits at 100 Gb/s are 0.64 ns.
        self.assertEqual(rows[64][6], "100")

    def test_a_run_is_made_once(self):
        program = self.program("echo x >> ../../ran; echo 'Avg slowdown: 1.250'")
        file = self.out / "a-1.csv"
        file.write_text("")
        self.assertEqual([measured(program, file, self.out) for _ in range(2)], [1.25, 1.25])
        self.assertEqual((self.out / "ran").read_text(), "x\n")

    def test_another_program_and_other_messages_are_run_anew(self):
        file = self.out / "a-1.csv"
        file.write_text("")
        found = [measured(self.program("echo 'Avg slowdown: 1.5'"), file, self.out)]
        program = self.program("echo Avg slowdown: 2.$(wc -c < messages.csv)")
        found.append(measured(program, file, self.out))
        file.write_text("1,1,2,16,64,0\n")
        found.append(measured(program, file, self.out))
        self.assertEqual(found, [1.5, 2.0, 2.14])

    def test_one_that_failed_is_told_and_made_again(self):
        file = self.out / "a-1.csv"
        file.write_text("")
        with self.assertRaisesRegex(WrongError, "exit status 3"):
            measured(self.program("echo 'Avg slowdown: 1.1'; exit 3"), file, self.out)
        self.assertEqual(measured(self.program("echo 'Avg slowdown: 2'"), file, self.out), 2.0)

    def test_the_table_leaves_out_what_was_not_run(self):
        rows = [("a", {"hadoop": 1.5}), ("b", {"memcached": 2.0})]
        self.assertEqual(
            table(rows).splitlines()[2:], ["| a | 1.500 |  |  |  |  |", "| b |  |  |  |  | 2.000 |"]
        )


class Command(unittest.TestCase):
    def refused(self, *words):
        script = Path(edm_artifact.__file__)
        ended = subprocess.run(
            [sys.executable, script, *words], capture_output=True, text=True, check=False
        )
        self.assertEqual((ended.returncode, ended.stdout), (2, ""))
        self.assertEqual(ended.stderr.count("\n"), 1, ended.stderr)
        return ended.stderr

    def test_wrong_input_is_one_line(self):
        with tempfile.TemporaryDirectory() as out:
            there = ["--out", out]
            said = self.refused(*there, "--only", "nothing")
            self.assertIn("--only 'nothing': no row has it; edm: as it is", said)
            said = self.refused(*there, "--simulator", f"{out}/none")
            self.assertIn("there is no such folder; a checkout of https://github.com/wegul", said)
            said = self.refused(*there, "--simulator", out)
            self.assertIn("is no checkout of https://github.com/wegul/EDM", said)

    def test_rows_are_chosen_by_name(self):
        self.assertEqual(Row("edm").name, "edm: as it is")
        self.assertEqual(Row("pfc", ("a", "b"), draw=2).name, "pfc: a and b, draw 2")
        with contextlib.redirect_stdout(io.StringIO()), mock.patch("sys.argv", ["x", "--help"]):
            self.assertRaises(SystemExit, edm_artifact.arguments)


if __name__ == "__main__":
    unittest.main()
