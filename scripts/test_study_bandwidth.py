"""The arithmetic of memory bandwidth: what tools write, times, correlations."""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import study_bandwidth
from study_bandwidth import (
    COUNTERS,
    StudyError,
    cache,
    correlation,
    counted_bytes,
    load,
    missing_counter,
    modelled_bytes,
    quiet,
    write,
)

SCRIPT = Path(study_bandwidth.__file__)
CALLGRIND = """\
version: 1
cmd: ./copy
desc: LL cache: 2621440 B, 64 B, 20-way associative
events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw ILdmr DLdmr DLdmw
fl=(1) x.c
3 1 1
totals: 900 300 200 9 30 20 1 10 5 0 4
"""


class Caches(unittest.TestCase):
    def test_a_cache_is_given_as_valgrind_takes_it(self):
        self.assertEqual(cache("2560KiB/20"), "2621440,20,64")
        self.assertEqual(cache("32MiB/16"), "33554432,16,64")

    def test_a_cache_that_valgrind_refuses_is_refused(self):
        for text in ["", "2560KiB", "2560KB/20", "3MiB/16", "1KiB/0", "1KiB/100", "-1MiB/2"]:
            with self.subTest(text), self.assertRaisesRegex(argparse.ArgumentTypeError, "must be"):
                cache(text)


class Tools(unittest.TestCase):
    def test_lines_are_missed_ones_and_dirty_victims(self):
        # 1 + 10 + 5 misses; 0 + 4 victims, and a count that is left out at the end is 0.
        self.assertEqual(modelled_bytes(CALLGRIND), (16 * 64, 4 * 64))
        with self.assertRaisesRegex(StudyError, "callgrind: no line of 'totals'"):
            modelled_bytes(CALLGRIND.replace("totals", "summary"))

    def test_counters_of_all_sockets_are_added(self):
        text = "# started on Thu\n\n"
        text += "".join(
            f"{socket},1,{mib},MiB,{event},100,100.00,,\n"
            for event, mib in zip(COUNTERS, ["2.50", "1.00"], strict=True)
            for socket in ["S0", "S1"]
        )
        without_sockets = text.replace("S0,1,", "").replace("S1,1,", "")
        self.assertEqual(counted_bytes(without_sockets), (5 << 20, 2 << 20))
        with self.assertRaisesRegex(StudyError, "must be a number of MiB"):
            counted_bytes(f"<not counted>,,{COUNTERS[0]},0,100.00,,")

    def test_a_machine_without_counters_is_told_by_the_missing_event(self):
        with tempfile.TemporaryDirectory() as folder:
            perf = Path(folder) / "perf"

            def said(words):
                perf.write_text(f"#!/bin/sh\n{words}\n")
                perf.chmod(0o755)
                return missing_counter(str(perf))

            self.assertIsNone(said("echo '1.0,MiB,x,1,100.00,,' >&2"))
            syntax = r"printf 'event syntax error\n  \\___ Cannot find PMU\n' >&2; exit 129"
            self.assertEqual(said(syntax), f"{COUNTERS[0]}: Cannot find PMU")
            self.assertEqual(said("exit 1"), f"{COUNTERS[0]}: no answer")
            self.assertEqual(said("echo '<not supported>,,x' >&2"), f"{COUNTERS[0]}: not supported")
        self.assertRegex(missing_counter("no-such-perf"), "^no-such-perf: No such file")


class Times(unittest.TestCase):
    def test_what_other_programs_took_is_not_in_the_quiet_time(self):
        # It slept 1 s, ran 6 s and was ready for 13 s of 20, as in the pager's own test.
        self.assertAlmostEqual(quiet(20, 6, 13), 7)
        self.assertEqual(quiet(7, 6, 0), 7)
        # Two threads, each with half of a processor.
        self.assertAlmostEqual(quiet(10, 10, 10), 5)
        self.assertEqual(quiet(3, 0, 0), 3)

    def test_a_run_is_timed_with_all_that_it_starts(self):
        program = "import time\nwhile time.process_time() < 0.4: pass\nraise SystemExit(7)"
        words = ["sh", "-c", '"$0" -c "$1" & wait $!', sys.executable, program]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "times.json"
            ended = subprocess.run([sys.executable, SCRIPT, "timed", path, *words], check=False)
            self.assertEqual(ended.returncode, 7)
            took = json.loads(path.read_text())
        self.assertGreaterEqual(took["processor_s"], 0.4)
        self.assertGreaterEqual(took["quiet_s"], 0.3)
        self.assertLessEqual(took["quiet_s"], took["run_s"])


class Data(unittest.TestCase):
    def test_counters_count_before_a_model_and_a_model_with_its_cache(self):
        row = {"app": "a", "source": "model", "llc": "2560KiB/20", "read_bytes": 10**9}
        row |= {"written_bytes": 5 * 10**8, "run_s": 9, "quiet_s": 2, "processor_s": 1}
        other = row | {"llc": "32MiB/16", "read_bytes": 0}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bandwidth.csv"
            write(path, [row, other])
            self.assertEqual(load(path, "2560KiB/20", {}), {"a": 6.0})
            self.assertEqual(load(path, "32MiB/16", {}), {"a": 2.0})
            self.assertEqual(load(path, "1MiB/16", {}), {})
            # 12 Gb in 4 s, where a quiet machine's time is known.
            self.assertEqual(load(path, "2560KiB/20", {"a": 4.0}), {"a": 3.0})
            write(path, [row, row | {"source": "counters", "llc": "", "read_bytes": 0}])
            self.assertEqual(load(path, "2560KiB/20", {}), {"a": 2.0})

    def test_the_time_of_a_quiet_machine_is_the_least_with_all_memory_local(self):
        runs = {
            ("a", 100, ("0", "")): {0: {"run_s": "3.0"}, 1: {"run_s": "2.0"}, 2: {"run_s": ""}},
            ("a", 100, ("3", "100")): {0: {"run_s": "1.0"}},
            ("a", 25, ("0", "")): {0: {"run_s": "1.5"}},
        }
        self.assertEqual(study_bandwidth.quiet_times(runs), {"a": 2.0})

    def test_times_that_are_measured_again_are_kept_if_they_are_the_least(self):
        best = {"run_s": "5.000", "quiet_s": "2.000", "processor_s": "1.000"}
        rows = [
            {"app": app, "source": "model", "llc": "x", "read_bytes": "1", "written_bytes": "2"}
            | {"run_s": "6.000", "quiet_s": quiet_s, "processor_s": "1.500"}
            for app, quiet_s in [("slow", "3.000"), ("fast", "1.000")]
        ]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bandwidth.csv"
            write(path, rows)
            arguments = argparse.Namespace(data=path, times=True, apps=["slow", "fast"])
            with mock.patch.object(study_bandwidth, "times", return_value=best):
                study_bandwidth.measure(arguments)
            lines = path.read_text().splitlines()
        self.assertEqual(lines[1], "slow,model,x,1,2,5.000,2.000,1.000")
        self.assertEqual(lines[2], "fast,model,x,1,2,6.000,1.000,1.500")


class Correlations(unittest.TestCase):
    def test_they_are_those_of_the_textbook(self):
        # Around the means the products sum to 4, the squares to 5 and 5. Ranks are the values.
        found = correlation([(1.0, 1.0), (2.0, 3.0), (3.0, 2.0), (4.0, 4.0)])
        self.assertAlmostEqual(found["pearson"][0], 0.8)
        self.assertAlmostEqual(found["rank"][0], 0.8)
        # Fisher: atanh(0.8) = 1.0986, 1.96 / sqrt(4 - 3) at each side; ranks 1.96 * sqrt(1.32).
        self.assertAlmostEqual(found["pearson"][1], -0.697, 3)
        self.assertAlmostEqual(found["pearson"][2], 0.9956, 3)
        self.assertLess(found["rank"][1], found["pearson"][1])

    def test_ranks_see_only_the_order(self):
        found = correlation([(1.0, 1.0), (2.0, 8.0), (3.0, 27.0), (4.0, 640.0), (5.0, 5000.0)])
        self.assertAlmostEqual(found["rank"][0], 1)
        self.assertLess(found["pearson"][0], 0.9)


class Check(unittest.TestCase):
    def test_a_known_bandwidth_is_found(self):
        for program in ["valgrind", "cc"]:
            if not shutil.which(program):
                self.skipTest(f"{program} is not installed")
        words = [sys.executable, SCRIPT, "check"]
        ended = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertEqual(len(ended.stdout.splitlines()), 2)


if __name__ == "__main__":
    unittest.main()
