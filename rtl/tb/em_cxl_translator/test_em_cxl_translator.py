"""em_cxl_translator does operation by operation what the translator of crates/cxl does."""

import os

import pytest

from flow import replay, tools

STEPS = int(os.environ.get("RTL_CYCLES", "100000"))
SEED = int(os.environ.get("RTL_SEED", "1"))
BENCH = tools.RTL / "tb" / "em_cxl_translator" / "replay.cpp"
# Of 10^5 steps: every outcome, and searches of every length up to the last.
MET = {f"{op}_{came}": 500 for op in ("translate", "map", "unmap") for came in ("found", "none")}
MET |= {f"reads_{reads}": 20 for reads in range(6)}


@pytest.mark.parametrize(("buckets", "entries"), [(16, 8), (1024, 32)])
def test_every_operation_is_the_models(buckets, entries):
    program = replay.program(
        "em_cxl_translator", BENCH, {"Buckets": buckets, "TlbEntries": entries}
    )
    wanted = buckets, entries, STEPS, SEED
    said, code = replay.replay_model(program, "translator_trace", wanted, crate="ethermem-cxl")
    assert code == 0, said
    counts = {name: int(count) for name, count in (word.split("=") for word in said.split())}
    if buckets == 16:
        assert all(counts.get(name, 0) >= least for name, least in MET.items()), said
        assert counts["map_full"] > 20 and counts["reads_8"] > 20, said
    assert counts["reads_0"] > 1000 and counts["reads_1"] > 1000, said
