"""The synthesis flow counts what a module is known to have, and its fits find a known power."""

import json

import pytest

from flow import synth, synth_cases, synth_cut, synth_fit, synth_job


def test_a_small_module_has_the_registers_it_declares():
    rows = [synth.synthesised(synth_cases.job("em_sync", target)) for target in ("small", "quick")]
    for row in rows:
        # Two stages of one bit, and nothing between them.
        assert (row["flip_flops"], row["cells"], row["memory_bits"]) == (2, 2, 0), row
    assert synth.synthesised(synth_cases.job("em_arb_prio", "quick", 4))["levels"] > 1


def test_no_path_is_long_where_registers_of_many_kinds_meet():
    # Registers with and without reset and enable, and sums between all of them: mapped apart for
    # each kind, the longest path of both was half as long again.
    for top in ("em_sched_port", "em_size_class_candidate"):
        assert synth.synthesised(synth_cases.job(top, "quick"))["levels"] < 25, top


def test_a_memory_counts_by_its_bits_and_not_as_flip_flops():
    row = synth.synthesised(synth_cases.job("em_ram", "small"))
    assert (row["memory_bits"], row["flip_flops"]) == (64 * 66, 0), row


def test_the_longest_path_of_one_port_and_pair_is_that_of_the_whole():
    of_whole, of_one = (
        synth.synthesised(synth_cases.job("em_size_class_scheduler", target, 4))["levels"]
        for target in ("quick", "cut")
    )
    # ABC maps what is the same in other surroundings by a level more or less. With two ports, where
    # every choice among others is none, the whole is mapped by two levels more.
    assert abs(of_whole - of_one) <= 1, (of_whole, of_one)


def test_a_cut_keeps_one_port_and_one_pair_and_doubts_what_it_does_not_know():
    kept = {
        "\\gen_ports[0].u_ask.tag_o": 16,
        "\\gen_ports[10].u_ask.tag_o": 0,
        "\\gen_sources[1].gen_pairs[0].gen_pair.u_pair.class_q": 16,
        "\\gen_sources[1].gen_pairs[2].gen_pair.u_pair.class_q": 0,
        "\\u_matcher.phase_q": 16,
        "\\u_matcher.any_q": 4,
        "\\u_matcher.response_q": 2,
    }
    assert {name: synth_cut.kept_bits(name, 16, 4) for name in kept} == kept
    with pytest.raises(ValueError, match=r"u_matcher\.odd_q: 5 bits"):
        synth_cut.kept_bits("u_matcher.odd_q", 5, 4)


def test_a_result_is_kept_until_the_parameters_change():
    job = synth_cases.job("em_arb_prio", "small", 2)
    first = synth.synthesised(job)
    assert synth.synthesised(job) == first
    assert synth.synthesised(synth_cases.job("em_arb_prio", "small", 8))["cells"] > first["cells"]


def test_a_harness_leaves_no_pin_of_the_module_open():
    text = synth_job.harness("m", [("input", 1, "clk_i"), ("input", 3, "a"), ("output", 2, "b")])
    assert "m u_dut(.clk_i(clk), .a(inputs_q[1 +: 3]), .b(outputs[1 +: 2]));" in text
    assert "wire [3:0] inputs" in text and "wire [2:0] outputs" in text


def test_a_fit_finds_the_power_and_doubts_what_scatters():
    exact = synth_fit.fit([(n, 7.0 * n**2) for n in (2, 4, 8, 16)])
    assert exact["exponent"] == pytest.approx(2)
    assert exact["at_512"] == pytest.approx(7 * 512**2)
    assert exact["at_512_high"] == pytest.approx(exact["at_512_low"])
    bent = synth_fit.fit([(2, 10), (4, 50), (8, 120), (16, 900)])
    assert bent["at_512_low"] < bent["at_512"] / 2 < bent["at_512_high"]


def test_every_case_names_a_module_and_json_takes_it():
    for job in synth_cases.all_jobs():
        json.dumps(job)
        assert job["target"] in synth_job.TARGETS


def test_no_case_is_of_what_only_tests_have():
    tops = {job["top"] for job in synth_cases.all_jobs()}
    assert "em_size_class_candidate" in tops and "em_switch" in tops
    assert not tops & {"em_host_pair", "em_phy_loop", "em_system", "em_min_tree_proof"}
