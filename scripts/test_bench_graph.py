"""The bench of a graph larger than local memory, as far as it runs without root."""

import contextlib
import io
import json
import math
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import bench_graph
from bench_graph import LOCAL, SERVER, cell, checked, draw, local_bytes, over, sizes, spread, table
from swap_programs import kernel
from swap_programs.command import BenchError

LINE = "answer=ab12 edges=32 load=1.5 pagerank=2.25 components=0.25\n"
MIB = 1 << 20


def ran(whole, pagerank=1.0):
    """Return what a run gave."""
    return {"load": 0.5, "pagerank": pagerank, "components": 0.25, "whole": whole}


def result(rounds):
    """Return a graph's results."""
    about = {"scale": 16, "edges": 1_048_576, "private": 64 * MIB, "beside": MIB}
    return {**about, "local": 16 * MIB, "loads": [0.5, 1.25], "rounds": rounds}


def refusal(*words):
    """Return what is said of these arguments, with the exit code."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            code = bench_graph.main(list(words))
        except SystemExit as end:
            code = end.code
    return code, said.getvalue()


class Answers(unittest.TestCase):
    def test_the_parts_add_up(self):
        found = checked(f"a note\n{LINE}", "ab12")
        self.assertEqual((found["edges"], found["whole"]), (32, 4.0))

    def test_another_answer_is_an_error(self):
        with self.assertRaisesRegex(BenchError, "the answer is ab12; all local it was cd34"):
            checked(LINE, "cd34")

    def test_a_line_without_its_times_is_an_error(self):
        for printed in ("", "answer=ab12 edges=32 load=1.5", LINE.replace("1.5", "soon")):
            with self.assertRaisesRegex(BenchError, "not its times"):
                checked(printed, None)

    def test_a_run_that_is_killed_or_late_is_no_error(self):
        killed = bench_graph.run(["sh", "-c", "kill -9 $$"], 10, None)
        late = bench_graph.run(["sleep", "10"], 0.05, None)
        self.assertEqual((killed, late), ("killed", "over 0"))
        full = "echo 'OSError: [Errno 12] Cannot allocate memory' >&2; exit 1"
        self.assertEqual(bench_graph.run(["sh", "-c", full], 10, None), "out of memory")
        loader = "echo 'a.so: cannot apply protection: Cannot allocate memory' >&2; exit 1"
        self.assertEqual(bench_graph.run(["sh", "-c", loader], 10, None), "out of memory")

    def test_a_run_that_was_refused_memory_is_repeated(self):
        said = iter(["out of memory", "out of memory", {"whole": 1.0}])
        self.assertEqual(bench_graph.tried(lambda: next(said)), {"whole": 1.0})
        tries = []
        self.assertEqual(
            bench_graph.tried(lambda: tries.append(1) or "out of memory"), "out of memory"
        )
        self.assertEqual(len(tries), 3)
        self.assertEqual(bench_graph.tried(lambda: "killed"), "killed")

    def test_a_run_that_fails_says_its_last_line(self):
        with self.assertRaisesRegex(BenchError, "sh -c .*: second"):
            bench_graph.run(["sh", "-c", "echo first >&2; echo second >&2; exit 3"], 10, None)


class Tables(unittest.TestCase):
    def test_what_is_local_is_whole_mebibytes_and_no_less_than_the_pager_takes(self):
        self.assertEqual(local_bytes(115 * MIB, 25), 28 * MIB)
        self.assertEqual(local_bytes(40 * MIB, 25), 16 * MIB)

    def test_a_cell_has_the_median_and_the_ends_or_what_failed(self):
        self.assertEqual(cell([ran(3.0), ran(1.0), ran(2.0)], "whole"), "2.00 (1.00 to 3.00)")
        self.assertEqual(cell([ran(3.0), "killed"], "whole"), "killed")

    def test_ratios_are_of_one_round(self):
        # 4/1, 6/3, 9/3: the median is 3; of the medians it would be 6/3.
        self.assertEqual(over([ran(4), ran(6), ran(9)], [ran(1), ran(3), ran(3)]), "3.00")
        self.assertEqual(over([ran(4), "killed"], [ran(1), ran(1)]), "-")
        self.assertEqual(over([ran(4)], None), "-")

    def test_a_table_has_a_row_for_each_graph_and_place(self):
        text = table([result({LOCAL: [ran(2.0)], SERVER: [ran(4.0)]})])
        rows = [[part.strip() for part in line.split("|")[1:-1]] for line in text.splitlines()[2:]]
        self.assertEqual([row[:2] for row in rows], [["2^16", LOCAL], ["2^16", SERVER]])
        self.assertEqual([row[-2:] for row in rows], [["1.00", "0.50"], ["2.00", "1.00"]])

    def test_sizes_say_what_is_local_of_which_peak(self):
        said = sizes([result({})])
        self.assertIn("2^16 vertices, 1,048,576 edges: 16 MiB local of 64; 1.0 MiB", said)
        self.assertIn("load 0.5 to 1.2", said)

    def test_a_part_without_all_its_runs_has_no_bar(self):
        self.assertEqual(spread([ran(1, 3.0), ran(1, 1.0)], "pagerank"), (1.0, 2.0, 3.0))
        for values in ([], ["killed"], [ran(1), "over 60"]):
            self.assertTrue(all(map(math.isnan, spread(values, "whole"))), values)

    def test_equal_results_are_drawn_in_equal_bytes(self):
        results = [result({LOCAL: [ran(2.0)], SERVER: ["killed"]})]
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder) / name for name in ("a.svg", "b.svg")]
            for path in paths:
                draw(results, path)
            self.assertEqual(*(path.read_bytes() for path in paths))
            self.assertIn(b"<svg", paths[0].read_bytes())


class Arguments(unittest.TestCase):
    def test_refusals_are_one_line_with_exit_code_2(self):
        cases = {
            ("--scales", "17,x"): "x: must be a whole number, 10 to 22",
            ("--scales", "9"): "9: must be a whole number, 10 to 22",
            ("--rounds", "0"): "0: must be a whole number, 1 to 100",
            ("--local", "101"): "101: must be a whole number, 1 to 100",
            ("--swap-folder", "/no/such"): "/no/such: must be a folder",
            ("--places", "moon"): "invalid choice: 'moon'",
            ("--results", "/no/such.json"): "No such file",
        }
        for words, said in cases.items():
            with self.subTest(words):
                code, text = refusal(*words)
                self.assertEqual((code, text.count("\n")), (2, 1), text)
                self.assertTrue(text.startswith("error: ") and said in text, text)

    def test_results_of_before_are_shown_without_measuring(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "results.json"
            path.write_text(json.dumps([result({LOCAL: [ran(2.0)]})]))
            shown = io.StringIO()
            with contextlib.redirect_stdout(shown):
                self.assertEqual(bench_graph.main(["--results", str(path)]), 0)
        self.assertIn("| 2^16 | all local |", shown.getvalue())

    def test_results_that_are_none_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "results.json"
            for text in ("", "{}", '[{"scale": 16}]', "[]"):
                path.write_text(text)
                code, said = refusal("--results", str(path))
                self.assertEqual((code, said.count("\n")), (2, 1), said)


class Swap(unittest.TestCase):
    def test_the_file_is_whole_and_removed_also_after_a_failure(self):
        with tempfile.TemporaryDirectory() as folder:
            with (
                contextlib.suppress(KeyboardInterrupt),
                kernel.whole_file(Path(folder), MIB) as path,
            ):
                status = path.stat()
                self.assertEqual((status.st_size, status.st_mode & 0o777), (MIB, 0o600))
                self.assertGreaterEqual(status.st_blocks * 512, MIB)
                raise KeyboardInterrupt
            self.assertEqual(list(Path(folder).iterdir()), [])

    def test_swap_that_the_kernel_refuses_is_an_error_and_leaves_nothing(self):
        refused = subprocess.CompletedProcess([], 255, "", "swapon: it has holes\n")
        with (
            tempfile.TemporaryDirectory() as folder,
            mock.patch.object(kernel.subprocess, "run", return_value=refused),
        ):
            with (
                self.assertRaisesRegex(OSError, "swapon: it has holes"),
                kernel.swap_file(Path(folder), MIB, 3),
            ):
                self.fail("it was made")
            self.assertEqual(list(Path(folder).iterdir()), [])


if __name__ == "__main__":
    sys.exit(unittest.main())
