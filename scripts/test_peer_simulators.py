"""The scripts that compare with other simulators, as far as they run without these."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import peer_dcpim
import peer_homa
import peer_htsim
import peer_runs
import peer_simulators
from edm_artifact import WrongError
from peer_runs import Message, Times, Variant

MESSAGES = [Message(0, 0, 1, 1), Message(5_000_000, 2, 40, 7)]


class Messages(unittest.TestCase):
    def test_random_messages_have_the_load_the_pairs_and_the_sizes_that_were_asked_for(self):
        sizes = [(0.5, 1, 1), (0.5, 3, 5)]
        made = peer_runs.poisson(1, 8, 20_000, 0.5, sizes, 100_000)
        self.assertEqual(made, peer_runs.poisson(1, 8, 20_000, 0.5, sizes, 100_000))
        self.assertNotEqual(made, peer_runs.poisson(2, 8, 20_000, 0.5, sizes, 100_000))
        load = sum(one.packets for one in made) * 100_000 / 8 / made[-1].at_ps
        self.assertAlmostEqual(load, 0.5, delta=0.02)
        self.assertEqual({one.packets for one in made}, {1, 3, 4, 5})
        pairs = {(one.source, one.destination) for one in made}
        self.assertEqual(len(pairs), 8 * 7)
        self.assertTrue(all(source != destination for source, destination in pairs))
        self.assertEqual(made, sorted(made, key=lambda one: one.at_ps))

    def test_an_incast_comes_from_different_nodes_at_once(self):
        made = peer_runs.incasts(1, 8, 7, 2, 3, 1_000_000)
        self.assertEqual(len(made), 21)
        for number in range(3):
            part = made[7 * number : 7 * number + 7]
            self.assertEqual({one.at_ps for one in part}, {peer_runs.exact(number * 1_000_000)})
            self.assertEqual(len({one.destination for one in part}), 1)
            nodes = {one.source for one in part} | {part[0].destination}
            self.assertEqual(nodes, set(range(8)))

    def test_times_are_those_that_a_float_holds(self):
        # A float has 24 bits.
        self.assertEqual(peer_runs.exact(2**24 - 1), 2**24 - 1)
        self.assertEqual(peer_runs.exact(2**24 + 1), 2**24)

    def test_our_trace_has_nanoseconds_and_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "a.csv"
            peer_runs.write_trace([*MESSAGES, Message(1_234, 3, 4, 2)], 1000, file)
            rows = file.read_text().splitlines()
        self.assertEqual(rows[0], "arrival_ns,kind,compute,memory,bytes")
        self.assertEqual(
            rows[1:],
            ["0.000,write,0,1,1000", "5000.000,write,2,40,7000", "1.234,write,3,4,2000"],
        )


class Tables(unittest.TestCase):
    def test_a_percentile_is_the_least_value_that_covers_the_share(self):
        values = [float(value) for value in range(1, 201)]
        self.assertEqual(peer_runs.percentile(values, 0.99), 198.0)
        self.assertEqual(peer_runs.percentile(values, 1.0), 200.0)
        self.assertEqual(peer_runs.percentile([3.0], 0.99), 3.0)

    def test_classes_are_those_that_have_messages(self):
        found = peer_runs.classes(MESSAGES, [(1, 1), (2, 8), (9, 32)])
        self.assertEqual(found, {"all": [0, 1], "1": [0], "2 to 8": [1]})
        self.assertEqual(peer_runs.classes(MESSAGES[:1], [(1, 1)]), {"all": [0]})

    def test_ratios_are_ours_over_theirs_and_marked_beyond_a_tenth(self):
        cells = peer_runs.compared(Times([2.0, 4.0]), Times([2.18, 4.36]), [0, 1])
        self.assertEqual(cells, ["2", "3.000", "3.270", "1.090", "4.000", "4.360", "1.090"])
        cells = peer_runs.compared(Times([2.0, 4.0]), Times([1.0, 4.0]), [0, 1])
        self.assertEqual(cells[3], "0.833 (!)")
        self.assertEqual(cells[6], "1.000")

    def test_messages_that_did_not_end_are_told(self):
        cells = peer_runs.compared(Times([2.0, None]), Times([2.0, 9.0]), [0, 1])
        self.assertEqual(cells[:4], ["1 of 2", "2.000", "2.000", "1.000"])
        cells = peer_runs.compared(Times([None]), Times([1.0]), [0])
        self.assertEqual(cells, ["0 of 1"] + [""] * 6)

    def test_a_table_is_markdown(self):
        self.assertEqual(
            peer_runs.table(["a", "b"], [["1", "2"]]), "| a | b |\n| --- | --- |\n| 1 | 2 |"
        )


class Htsim(unittest.TestCase):
    def test_a_matrix_numbers_flows_from_one(self):
        self.assertEqual(
            peer_htsim.matrix(MESSAGES).splitlines(),
            [
                "Nodes 64",
                "Connections 2",
                "0->1 id 1 start 0 size 1424",
                "2->40 id 2 start 5000000 size 9968",
            ],
        )

    def test_the_first_arrival_of_a_flow_counts(self):
        log = "x\nreceived 2 at_ps 7500000\nreceived 2 at_ps 9000000\nFlow 1 finished at 3\n"
        self.assertEqual(peer_htsim.read(log, MESSAGES).us, [None, 2.5])
        for flow in (0, 3):
            with self.assertRaisesRegex(WrongError, f"'received {flow} at_ps 1'; flows are 1 to 2"):
                peer_htsim.read(f"received {flow} at_ps 1", MESSAGES)

    def test_both_sides_have_equal_packets(self):
        # Preamble, gap, Ethernet's header and FCS are 38 bytes.
        scenario = peer_htsim.scenario(peer_htsim.CASES[0])
        header = peer_htsim.HEADER_BYTES - 38
        self.assertIn(f"\nheader_bytes = {header}\n", scenario)
        self.assertIn(f"\nmtu_bytes = {peer_htsim.DATA_BYTES + header}\n", scenario)
        self.assertEqual((peer_htsim.DATA_BYTES + peer_htsim.HEADER_BYTES) % 8, 0)
        # Its queue counts the packet on the wire: eight that wait, and this one.
        room = int(peer_htsim.OPTIONS["-q"]) * peer_htsim.DATA_BYTES
        self.assertEqual(room // (peer_htsim.DATA_BYTES + peer_htsim.HEADER_BYTES), 9)

    def test_hosts_send_alike_on_both_sides(self):
        # The base has both defaults; a variant that changes the order on one side changes both.
        self.assertEqual(peer_htsim.OPTIONS["-host_queue_type"], "fair_prio")
        self.assertNotIn("host_queue", peer_htsim.SCENARIO)
        for case in peer_htsim.CASES:
            for variant in case.variants:
                arrival = "fabric.ndp.host_queue=arrival" in variant.keys
                options = dict(variant.options)
                self.assertEqual(options.get("-host_queue_type", ""), "prio" if arrival else "")


class Dcpim(unittest.TestCase):
    def test_flows_begin_at_a_second(self):
        self.assertEqual(
            peer_dcpim.flows(MESSAGES).splitlines(),
            ["0 1.000000000000 0 0 1 0 0 0 1", "1 1.000005000000 0 0 7 0 0 2 40"],
        )

    def test_times_leave_out_the_acknowledgement(self):
        # 40 bytes take 3.2 ns of a host's link and 0.8 of a spine's; links are 650 ns long.
        near = 2 * (0.65 + 0.0032)
        far = near + 2 * (0.65 + 0.0008)
        log = (
            "1 10220 2 40 1000005.0000 1000012.0000 7.0000 6.8000 1.0294 7/7//7 0/0/0 0.0\n"
            "bad slowdown flow size:1 2 3 4\n"
            "0 1460 0 1 1000000.0000 1000002.9000 2.9000 2.8464 1.0188 1/1//1 0/0/0 0.0\n"
        )
        times = peer_dcpim.read(log, MESSAGES, 650).us
        self.assertAlmostEqual(times[0], 2.9 - near)
        self.assertAlmostEqual(times[1], 7.0 - far)
        with self.assertRaisesRegex(WrongError, "flow 1; flows are 0 to 0"):
            peer_dcpim.read(log, MESSAGES[:1], 650)

    def test_every_fabric_has_parameters_on_both_sides(self):
        fabrics = {case.fabric for case in peer_dcpim.CASES}
        self.assertEqual(fabrics, set(peer_dcpim.PARAMETERS))
        for case in peer_dcpim.CASES:
            self.assertIn(f"[fabric.{case.fabric}]\n", peer_dcpim.scenario(case))
            link = float(peer_dcpim.PARAMETERS[case.fabric]["propagation_delay"]) * 1e9
            self.assertIn(f"\npropagation_ns = {link:.0f}\n", peer_dcpim.scenario(case))


class Homa(unittest.TestCase):
    def test_a_line_has_whole_packets_of_its_data(self):
        # 1,504 bytes of a link less 2 of PPP and 40 of headers.
        self.assertEqual(peer_homa.lines(MESSAGES), "0 0 1 1462\n5000000 2 40 10234\n")

    def test_the_first_arrival_of_a_message_counts(self):
        log = "received 1 at_ps 7500000\nreceived 1 at_ps 9000000\ndropped 0 resends 0\n"
        self.assertEqual(peer_homa.read(log, MESSAGES).us, [None, 2.5])
        with self.assertRaisesRegex(WrongError, "'received 2 at_ps 1'; messages are numbered 0 to"):
            peer_homa.read("received 2 at_ps 1", MESSAGES)

    def test_both_sides_have_equal_packets(self):
        scenario = peer_homa.scenario(peer_homa.CASES[0])
        # Preamble, gap, Ethernet's header and FCS are 38 bytes; PPP has 2.
        mtu_bytes = peer_homa.LINE_BYTES - 38
        self.assertIn(f"\nmtu_bytes = {mtu_bytes}\n", scenario)
        self.assertIn(f"\nunscheduled_bytes = {(mtu_bytes - 40) * 7}\n", scenario)
        self.assertEqual(int(peer_homa.OPTIONS["mtu"]), peer_homa.LINE_BYTES - 2)
        self.assertEqual(peer_homa.LINE_BYTES % 8, 0)
        self.assertEqual(peer_homa.PACKET_PS, 1_203_200)
        # A rack's links to the spines carry as much as its hosts' links.
        self.assertEqual(peer_homa.OPTIONS["spine-gbps"], "40")

    def test_variants_change_options_that_exist_and_keys_of_the_fabric(self):
        sources = Path(peer_homa.__file__).with_suffix(".cc").read_text()
        for option in (*peer_homa.OPTIONS, "end-us", "trace"):
            self.assertIn(f'line.AddValue("{option}", ', sources)
        for case in peer_homa.CASES:
            self.assertEqual(case.variants[0], Variant("base"))
            for variant in case.variants:
                self.assertLessEqual(dict(variant.options).keys(), peer_homa.OPTIONS.keys())
                self.assertTrue(all(key.startswith("fabric.") for key in variant.keys))
        self.assertEqual(len({case.trace for case in peer_homa.CASES}), len(peer_homa.CASES))

    def test_a_run_is_that_of_its_program_and_options(self):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder)
            program = out / "program"
            case, base = peer_homa.CASES[0], Variant("base")
            other = Variant("other", options=(("run", "2"),))
            for at_ps in (1_000_000, 2_000_000):
                program.write_text(
                    "#!/bin/sh\n"
                    f'case "$*" in *--run=2*) echo received 0 at_ps 9000000;;'
                    f" *) echo received 0 at_ps {at_ps};; esac\n"
                )
                program.chmod(0o755)
                times = peer_homa.theirs(program, case, base, MESSAGES, out).us
                self.assertEqual(times, [at_ps / 1e6, None])
            times = peer_homa.theirs(program, case, other, MESSAGES, out).us
            self.assertEqual(times, [9.0, None])


class Cases(unittest.TestCase):
    def test_every_case_begins_with_its_base_and_names_edits_that_exist(self):
        for peer in (peer_htsim, peer_dcpim):
            used = set(peer.BASE)
            names = [(case.fabric, case.name) for case in peer.CASES]
            self.assertEqual(len(set(names)), len(names))
            for case in peer.CASES:
                self.assertEqual(case.variants[0], Variant("base"))
                used |= {edit for variant in case.variants for edit in variant.edits}
            self.assertEqual(used, set(peer.EDITS))


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = Path(folder.name)

    def test_a_run_is_made_once_and_a_failed_one_again(self):
        log = self.out / "a.log"
        with self.assertRaisesRegex(WrongError, "^sh ended with 3; see .*a.part$"):
            peer_runs.logged(["sh", "-c", "exit 3"], log)
        words = ["sh", "-c", "echo x >> ran; echo said"]
        self.assertEqual([peer_runs.logged(words, log) for _ in range(2)], ["said\n"] * 2)
        self.assertEqual((self.out / "ran").read_text(), "x\n")

    def test_a_program_is_named_by_its_changes(self):
        words = {"one": "a is changed", "two": "b is changed"}
        with self.assertRaisesRegex(WrongError, "peer-one-two: .*so: a is changed; b is changed$"):
            peer_runs.changed(self.out, "peer", ("one", "two"), words)
        (self.out / "peer-one").write_text("1")
        found = peer_runs.changed(self.out, "peer", ("one",), words)
        self.assertEqual(found, (self.out / "peer-one").resolve())
        first = peer_runs.built(found)
        found.write_text("2")
        self.assertNotEqual(peer_runs.built(found), first)


class Command(unittest.TestCase):
    def refused(self, *words):
        script = Path(peer_simulators.__file__)
        ended = subprocess.run(
            [sys.executable, script, *words], capture_output=True, text=True, check=False
        )
        self.assertEqual((ended.returncode, ended.stdout), (2, ""))
        self.assertEqual(ended.stderr.count("\n"), 1, ended.stderr)
        return ended.stderr

    def test_wrong_input_is_one_line(self):
        with tempfile.TemporaryDirectory() as out:
            there = ["--out", out, "--ethermem", sys.executable, "--simulator", f"{out}/none"]
            said = self.refused("htsim", *there, "--only", "nothing")
            self.assertIn("--only 'nothing': no trace has it; ndp: all-to-all, load 0.3", said)
            said = self.refused("dcpim", *there)
            self.assertIn("none: must be a folder of programs of https://github.com/Terabit-", said)
            said = self.refused("dcpim", *there[:-1], out)
            self.assertIn("simulator-void: there is no such program; it must be built so: ", said)
            said = self.refused("homa", *there)
            self.assertIn("none: must be the program of scripts/peer_homa.cc", said)
            said = self.refused("htsim", *there, "--ethermem", f"{out}/none")
            self.assertIn(f"--ethermem {out}/none: there is no such program", said)

    def test_without_pyarrow_it_says_what_to_install(self):
        with (
            tempfile.TemporaryDirectory() as out,
            mock.patch.dict(sys.modules, {"pyarrow": None}),
            self.assertRaisesRegex(WrongError, "pip install pyarrow"),
        ):
            peer_runs.ours(Path("x"), "", Path(out) / "a.csv", "ndp", (), Path(out))


if __name__ == "__main__":
    unittest.main()
