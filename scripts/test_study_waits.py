"""The classes of programs by waits: arithmetic, verdicts, when repeats are enough."""

import tempfile
import unittest
from pathlib import Path
from unittest import mock

import study_waits
from study_slowdowns import NETWORKS, NONE
from study_waits import COLUMNS, by_clock, by_waits, class_of, demands, has_enough, is_useful

REPORT = {
    "seconds": 10.0,
    "counts": {"read_pages": 100, "prefetched_pages": 300, "written_pages": 600, "faults": 9},
    "counted": {
        "stopped_seconds": 0.0,
        "waited_seconds": 0.0,
        "quiet_seconds": 5.0,
        "parallel": False,
    },
}


def row(network, repeat, **counted):
    """Return a row as it is in the file."""
    report = REPORT | {"counted": REPORT["counted"] | counted}
    found = study_waits.row_of("a", 1000, network, repeat, {"measured_s": "3.000"}, report)
    return {name: str(found.get(name, "")) for name in COLUMNS}


def runs(stopped, **plain):
    """Return runs of one program whose waits with each network are given by repeat."""
    found = study_waits.load(Path("there/is/none.csv"))
    for repeat in range(max(map(len, stopped.values()))):
        found["a", NONE][repeat] = row(NONE, repeat, **plain)
    for network, seconds in stopped.items():
        for repeat, second in enumerate(seconds):
            waits = {"stopped_seconds": second, "waited_seconds": second / 2}
            found["a", network][repeat] = row(network, repeat, **waits)
    return found


class Slowdowns(unittest.TestCase):
    def test_waits_are_over_the_quiet_time(self):
        network = NETWORKS[0]
        # 1 + 0.5 / 5 s at least, 1 + 1 / 5 s at most.
        mean, low, high = by_waits(study_waits.pairs(runs({network: [1.0] * 3}), "a", network))
        self.assertAlmostEqual(low, 1.1)
        self.assertAlmostEqual(high, 1.2)
        self.assertAlmostEqual(mean, (1.1 * 1.2) ** 0.5)
        # Threads that ran at once could have lost as little as that over the whole 10 s.
        parallel = runs({network: [1.0] * 3}, parallel=True)
        _, low, high = by_waits(study_waits.pairs(parallel, "a", network))
        self.assertAlmostEqual(low, 1.05)
        self.assertAlmostEqual(high, 1.2)
        self.assertIsNone(by_waits([]))

    def test_a_run_that_failed_counts_in_neither_way(self):
        network = NETWORKS[0]
        found = runs({network: [1.0] * 3})
        failed = study_waits.row_of("a", 1000, network, 1, None, None)
        found["a", network][1] = {name: str(failed.get(name, "")) for name in COLUMNS}
        left = study_waits.pairs(found, "a", network)
        self.assertEqual([delayed["repeat"] for _, delayed in left], ["0", "2"])
        self.assertEqual(by_clock(left), (1.0, 1.0, 1.0))

    def test_the_clock_of_a_quiet_machine_counts_before_that_of_a_busy_one(self):
        busy = runs(dict.fromkeys(NETWORKS, [1.0] * 3))
        quiet = study_waits.collections.defaultdict(dict)
        self.assertEqual(study_waits.clock(busy, quiet, "a")[1], "busy")
        for network in [NONE, *NETWORKS]:
            seconds = "2.0" if network == NONE else "3.0"
            quiet["a", 25, network] = {repeat: {"measured_s": seconds} for repeat in range(3)}
        found, machine = study_waits.clock(busy, quiet, "a")
        self.assertEqual(machine, "quiet")
        self.assertEqual({round(estimate[0], 9) for estimate in found.values()}, {1.5})

    def test_waits_are_over_the_time_of_a_quiet_machine_if_it_is_known(self):
        busy = runs(dict.fromkeys(NETWORKS, [1.0] * 3), quiet_seconds=8.0)
        quiet = study_waits.collections.defaultdict(dict)
        self.assertEqual(study_waits.best(busy, quiet, "a")[1], "busy")
        self.assertIsNone(study_waits.stretch(busy, quiet, "a"))
        quiet["a", 25, NONE] = {repeat: {"run_s": "4.0"} for repeat in range(2)}
        found, time = study_waits.best(busy, quiet, "a")
        # 0.5 s and 1 s of 4 s, not of 8.
        self.assertEqual(time, "quiet")
        self.assertEqual([round(end, 9) for end in found[NETWORKS[0]][1:]], [1.125, 1.25])
        self.assertEqual(study_waits.stretch(busy, quiet, "a"), 2.0)

    def test_demands_are_of_runs_without_delays(self):
        swap, waits = demands(runs({NETWORKS[0]: [1.0]}), {}, "a")
        # 1000 pages of 32,768 bits, and 100 waits, in 5 s.
        self.assertAlmostEqual(swap, 1000 * 32_768 / 5 / 1e9)
        self.assertAlmostEqual(waits, 20)
        quiet = {("a", 25, NONE): {0: {"run_s": "1.5"}, 1: {"run_s": "2.5"}}}
        self.assertAlmostEqual(demands(runs({NETWORKS[0]: [1.0]}), quiet, "a")[1], 50)

    def test_a_kernel_without_accounts_is_refused(self):
        for report in [REPORT | {"counted": None}, {"seconds": 1.0}]:
            with self.assertRaisesRegex(SystemExit, "does not count waits"):
                study_waits.row_of("a", 1000, NONE, 0, {"measured_s": "1"}, report)


class Verdicts(unittest.TestCase):
    def kind(self, fast, slow, is_quiet=True):
        estimates = dict(zip(NETWORKS, [fast, slow, (2.0, 1.9, 2.1)], strict=True))
        return class_of(estimates, is_quiet)

    def test_classes_are_the_studys(self):
        within, at_limit = (1.02, 1.01, 1.03), (1.05, 1.04, 1.06)
        self.assertEqual(self.kind(within, within), "A")
        self.assertEqual(self.kind((1.07, 1.06, 1.08), (1.12, 1.1, 1.14)), "B")
        self.assertEqual(self.kind((1.1, 1.09, 1.11), (1.2, 1.1, 1.3)), "neither")
        self.assertEqual(self.kind((1.08, 1.07, 1.09), (1.2, 1.1, 1.3)), "undecided")
        self.assertEqual(self.kind(within, at_limit), "undecided")
        self.assertEqual(self.kind(None, None), "undecided")
        self.assertEqual(self.kind((1.01, None, None), (1.01, None, None)), "undecided")

    def test_over_the_time_of_a_busy_machine_only_what_is_above_is_known(self):
        within, above = (1.02, 1.01, 1.03), (1.2, 1.1, 1.3)
        self.assertEqual(self.kind(within, within, is_quiet=False), "undecided")
        self.assertEqual(self.kind(within, above, is_quiet=False), "undecided")
        self.assertEqual(self.kind(above, above, is_quiet=False), "neither")

    def test_an_interval_is_useful_if_it_decides_or_is_at_the_limit(self):
        self.assertTrue(is_useful((1.2, 1.1, 1.3), 1.05))
        self.assertFalse(is_useful((1.3, 1.06, 1.5), 1.05), "too wide")
        self.assertFalse(is_useful((1.06, 1.03, 1.09), 1.05), "undecided")
        self.assertTrue(is_useful((1.05, 1.045, 1.055), 1.05), "just at the limit")
        self.assertFalse(is_useful((1.0, None, None), 1.05))
        self.assertFalse(is_useful(None, 1.05))

    def test_a_program_that_failed_is_not_repeated(self):
        found = runs({network: [1.0] for network in NETWORKS})
        self.assertFalse(study_waits.has_failed(found, "a"))
        found["a", NETWORKS[2]][0]["run_s"] = ""
        self.assertTrue(study_waits.has_failed(found, "a"))

    def test_repeats_go_on_until_each_network_is_decided(self):
        # At 3 us a loss of 5 to 10 % is on both sides of 8 %.
        waits = dict.fromkeys(NETWORKS[1:], [2.0] * 3)
        self.assertFalse(has_enough(runs(waits | {NETWORKS[0]: [0.5] * 3}), "a", 3))
        self.assertTrue(has_enough(runs(waits | {NETWORKS[0]: [0.3] * 3}), "a", 3))
        self.assertFalse(has_enough(runs(waits | {NETWORKS[0]: [0.3] * 2}), "a", 3))
        self.assertFalse(has_enough(study_waits.load(Path("no")), "a", 3))


class Measure(unittest.TestCase):
    def test_only_what_the_data_lack_is_run(self):
        calls = []

        def run_once(_command, app, local, network, _timeout_s):
            calls.append((local, network))
            counts = REPORT["counts"] | {"held_pages": 1000}
            waits = {"stopped_seconds": 1.0, "waited_seconds": 1.0} if network != NONE else {}
            counted = REPORT["counted"] | waits
            return {"measured_s": "3.000"}, REPORT | {"counts": counts, "counted": counted}

        with tempfile.TemporaryDirectory() as folder:
            words = mock.Mock(
                data=Path(folder) / "waits.csv", apps=["a"], repeats=2, repeats_max=4, command="x"
            )
            with mock.patch.object(study_waits, "run_once", run_once):
                study_waits.measure(words)
                # The peak, then two repeats of four networks, of a quarter of 1000 pages.
                self.assertEqual(len(calls), 9)
                self.assertEqual(calls[0], ("100%", NONE))
                self.assertEqual({local for local, _ in calls[1:]}, {f"{250 * 4096}B"})
                study_waits.measure(words)
                self.assertEqual(len(calls), 9)
            found = study_waits.load(words.data)
        self.assertEqual(study_waits.slowdowns(found, "a")[NETWORKS[1]], (1.2, 1.2, 1.2))


if __name__ == "__main__":
    unittest.main()
