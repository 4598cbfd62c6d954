"""em_cxl_cache does operation by operation what the cache of crates/cxl does, in known cycles."""

import os

import pytest

from flow import replay, tools

OPERATIONS = int(os.environ.get("RTL_CYCLES", "100000")) // 4
SEED = int(os.environ.get("RTL_SEED", "1"))
BENCH = tools.RTL / "tb" / "em_cxl_cache" / "replay.cpp"
PUBLISHED = {"Sets": 128, "Fetches": 64}
SMALL = {"Sets": 2, "Fetches": 6}
# What every trace of the small cache has met; each stall is one of a full set or a full table.
MET = {"R_hit": 500, "R_miss": 500, "R_merged": 100, "R_stalled": 100, "W_hit": 500}
MET |= {"W_allocated": 100, "W_replaced": 500, "W_stalled": 100, "C_cleaned": 50, "C_kept": 50}
MET |= {"C_stalled": 5, "F_filled": 1000, "again_R_miss": 50, "again_R_stalled": 1}
MET |= {"again_W_replaced": 10, "again_C_cleaned": 1, "victims": 1000, "partial": 300}


def replayed(parameters, share, operations):
    program = replay.program("em_cxl_cache", BENCH, parameters)
    wanted = parameters["Sets"], parameters["Fetches"], operations, SEED + share
    said, code = replay.replay_model(program, "cache_trace", wanted, share, crate="ethermem-cxl")
    assert code == 0, said
    return {name: int(count) for name, count in (word.split("=") for word in said.split())}


@pytest.mark.parametrize("share", [100, 60])
def test_a_small_cache_that_stalls_and_replaces(share):
    counts = replayed(SMALL, share, OPERATIONS)
    assert all(counts.get(name, 0) >= least for name, least in MET.items()), counts


def test_the_published_cache():
    counts = replayed(PUBLISHED, 90, OPERATIONS)
    assert counts["R_hit"] > 1000 and counts["W_replaced"] > 1000 and counts["answers"] > 1000, (
        counts
    )
