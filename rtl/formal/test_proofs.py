"""Every proof passes, and fails when what it is about is broken (see flow/mutate.py)."""

import pytest

from flow import prove

# Unbounded, but for what is between two clocks, some ten edges of each in any order, and the lanes.
# In these either clock has an edge, or both, or neither, in each step.
TWO_CLOCKS = ["em_fifo_async_proof", "em_host_grants_proof"]
PROOFS = {
    "em_fifo_sync_proof": ("prove", 20, "abc pdr"),
    "em_fifo_ram_proof": ("prove", 20, "abc pdr"),
    "em_fifo_async_proof": ("bmc", 24, "smtbmc yices"),
    "em_arb_rr_proof": ("prove", 20, "abc pdr"),
    "em_min_tree_proof": ("prove", 20, "abc pdr"),
    "em_ordered_list_proof": ("prove", 20, "abc pdr"),
    "em_descrambler_proof": ("prove", 20, "abc pdr"),
    "em_tx_buffer_proof": ("prove", 20, "abc pdr"),
    "em_tx_arbiter_proof": ("prove", 20, "abc pdr"),
    "em_host_rows_proof": ("prove", 20, "abc pdr"),
    "em_host_grants_proof": ("bmc", 18, "smtbmc yices"),
    "em_sched_matcher_proof": ("prove", 20, "abc pdr"),
    "em_switch_lanes_proof": ("bmc", 10, "abc bmc3"),
    "em_size_class_first_proof": ("prove", 20, "abc pdr"),
    "em_size_class_matcher_proof": ("bmc", 8, "smtbmc yices"),
    "em_precedence_choice_proof": ("bmc", 6, "smtbmc yices"),
    "em_sched_log_proof": ("prove", 2, "smtbmc yices"),
    "em_sched_sum_proof": ("prove", 2, "smtbmc yices"),
    "em_link_registers_proof": ("bmc", 6, "smtbmc yices"),
    "em_cxl_cache_set_proof": ("bmc", 2, "smtbmc yices"),
    "em_cxl_cache_tags_proof": ("prove", 20, "abc pdr"),
    "em_cxl_control_proof": ("prove", 3, "smtbmc yices"),
    "em_cxl_bucket_proof": ("prove", 3, "smtbmc yices"),
    "em_cxl_responder_proof": ("prove", 3, "smtbmc yices"),
    "em_cxl_requester_proof": ("prove", 3, "smtbmc yices"),
    "em_cxl_axi_slave_proof": ("prove", 2, "smtbmc yices"),
    "em_cxl_axi_master_proof": ("prove", 2, "smtbmc yices"),
}


# What is proved at other parameters, too.
LIMITS = {f"em_host_rows_proof X={x}": ("em_host_rows_proof", {"X": x}) for x in (1, 8)}
LIMITS["em_size_class_matcher_proof ByOrder=0"] = ("em_size_class_matcher_proof", {"ByOrder": 0})
CASES = {top: (top, None) for top in PROOFS} | LIMITS


@pytest.mark.parametrize("case", CASES)
def test_proof(case):
    top, parameters = CASES[case]
    prove.sby(top, *PROOFS[top], multiclock=top in TWO_CLOCKS, parameters=parameters)
