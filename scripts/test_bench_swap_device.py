"""The bench of swap devices, as far as it runs without root."""

import argparse
import contextlib
import io
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import bench_swap_device
from bench_swap_device import (
    TOUCHES,
    dd,
    device,
    table_of_faults,
    table_of_reads,
    touched,
)
from swap_programs.command import BenchError, markdown, spread

LINES = """pool\tway\tunder_way\tround\tgb_per_s\tp50_us\tp99_us
local:\tbatch\t4\t0\t2.5\t1.5\t3.0
udp://127.0.0.1:1\tmerged\t4\t0\t0.5\t20.0\t30.0
"""


def rows(text):
    """Return the cells of a table's rows."""
    return [[part.strip() for part in line.split("|")[1:-1]] for line in text.splitlines()[2:]]


class Reads(unittest.TestCase):
    def test_lines_of_the_bench_are_named_by_their_scheme(self):
        with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
            file.write(LINES)
            file.flush()
            # What follows is the shell's $0 and arguments.
            shell = f"sh -c 'cat {file.name}'"
            options = argparse.Namespace(device=shell, pages=8, turns=2, timeout_s=10)
            found = device(options, {"local": "local:", "udp": "udp://127.0.0.1:1"})
        self.assertEqual([read["where"] for read in found], ["local:", "udp://"])
        self.assertEqual(found[1]["p50_us"], 20.0)

    def test_a_bench_that_fails_is_an_error_with_its_last_line(self):
        options = argparse.Namespace(
            device="sh -c 'echo no pool >&2; exit 2'", pages=8, turns=2, timeout_s=9
        )
        with self.assertRaisesRegex(BenchError, "no pool"):
            device(options, {"local": "local:"})

    def test_rounds_of_one_way_are_one_row(self):
        read = {"where": "udp://", "way": "batch", "under_way": 4, "p50_us": 8.0, "p99_us": 9.0}
        reads = [read | {"gb_per_s": rate} for rate in (0.5, 0.7, 0.6)]
        reads.append({"where": "tmpfs", "way": "dd", "under_way": 1, "gb_per_s": 3.0})
        self.assertEqual(
            rows(table_of_reads(reads)),
            [
                [
                    "udp://",
                    "batch",
                    "4",
                    "0.60 (0.50 to 0.70)",
                    *["8.0 (8.0 to 8.0)"],
                    "9.0 (9.0 to 9.0)",
                ],
                ["tmpfs", "dd", "1", "3.00 (3.00 to 3.00)", "-", "-"],
            ],
        )

    def test_dd_reads_the_whole_file(self):
        with tempfile.NamedTemporaryFile() as file:
            file.truncate(1 << 20)
            try:
                found = dd(Path(file.name), 60)
            except BenchError as error:
                self.skipTest(f"no direct reads in the folder of temporary files: {error}")
        self.assertEqual([rate["under_way"] for rate in found], [1, 32])


class Faults(unittest.TestCase):
    def test_software_is_the_rest_of_a_fault(self):
        zram = {"slow": 37_000, "p10_us": 9.0, "p50_us": 20.0, "transfer_us": 4.0}
        pool = {"slow": 37_500, "p10_us": 30.0, "p50_us": 40.0, "transfer_us": 15.0}
        faults = {"zram": [zram], "pool": [pool | {"taking_us": 3.0}]}
        self.assertEqual(
            [[cell.partition(" (")[0] for cell in row] for row in rows(table_of_faults(faults))],
            [
                ["zram", "37,000", "20.00", "9.00", "4.00", "16.00", "-"],
                ["pool", "37,500", "40.00", "30.00", "15.00", "25.00", "3.00"],
            ],
        )

    def test_the_program_that_touches_reads_what_it_wrote(self):
        self.assertEqual(touched([], 200, 60)["faults"], 0)
        printed = subprocess.run(
            [sys.executable, TOUCHES, "64", "500"], capture_output=True, text=True, check=True
        ).stdout
        said = dict(word.split("=") for word in printed.split())
        self.assertEqual(said["sum"], said["expected"])
        self.assertGreater(int(said["sum"]), 0)

    def test_a_wrong_sum_is_an_error(self):
        wrong = ["sh", "-c", "echo slow=0 faults=0 sum=1 expected=2"]
        with self.assertRaisesRegex(BenchError, "sum=1 expected=2"):
            touched(wrong, 1, 10)


class Command(unittest.TestCase):
    def test_refusals_are_one_line_with_exit_code_2(self):
        cases = {
            ("--rounds", "none"): "none: must be a whole number, 1 to 100",
            ("--touches", "0"): "0: must be a whole number, 1 to 10000000",
            ("--swap-folder", "/no/such"): "/no/such: must be a folder",
        }
        for words, said in cases.items():
            with self.subTest(words):
                text = io.StringIO()
                with contextlib.redirect_stderr(text), self.assertRaises(SystemExit) as ended:
                    bench_swap_device.main(list(words))
                self.assertEqual((ended.exception.code, text.getvalue().count("\n")), (2, 1))
                self.assertIn(said, text.getvalue())

    def test_a_spread_has_the_median_first(self):
        self.assertEqual(spread([3.0, 1.0, 2.0], 1), "2.0 (1.0 to 3.0)")
        self.assertEqual(markdown(["a"], [["b"]]), "| a |\n|---|\n| b |")
