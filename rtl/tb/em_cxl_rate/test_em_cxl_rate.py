"""em_cxl_rate is cycle by cycle in the state of the Rust model, and lets the same frames go."""

import os

import pytest

from flow import replay, tools

CYCLES = int(os.environ.get("RTL_CYCLES", "100000"))
SEED = int(os.environ.get("RTL_SEED", "1"))
BENCH = tools.RTL / "tb" / "em_cxl_rate" / "replay.cpp"
NAMES = ["LineMbps", "FloorMbps", "InitialMbps", "StepMbps"]
NAMES += [f"T{n}Cycles" for n in range(1, 7)] + ["ClockPs", "DepthBytes"]
# Times of a fiftieth of the published ones, with which many phases fit into a run; the published
# ones; and a line of a few steps, on which rounding and the floor are met at once.
CASES = {
    "quick": [100_000, 1_000, 100_000, 1_000, 250, 50, 55, 1_000, 200, 100, 4_000, 242],
    "published": [100000, 1000, 40000, 1000, 12500, 2500, 2750, 50000, 10000, 5000, 4000, 242],
    "least": [9, 2, 7, 4, 3, 0, 1, 5, 2, 1, 8_000, 255],
}
# Of 10^5 cycles.
MET = {"acted": 100, "duplicates": 100, "stable": 10, "pfc_response": 5, "recovery": 10}
MET |= {"recovery_pfc": 5, "exploration": 5, "guessing": 5}


@pytest.mark.parametrize("case", CASES)
def test_every_cycle_is_the_models(case):
    parameters = dict(zip(NAMES, CASES[case], strict=True))
    program = replay.program("em_cxl_rate", BENCH, parameters)
    cycles = CYCLES * 4 if case == "published" else CYCLES
    wanted = *CASES[case], cycles, SEED
    said, code = replay.replay_model(program, "rate_trace", wanted, crate="ethermem-cxl")
    assert code == 0, said
    counts = {name: int(count) for name, count in (word.split("=") for word in said.split())}
    assert counts["cycles"] == cycles and counts["sent"] > 0 and counts["held"] > 0, said
    if case == "quick":
        assert all(counts[name] >= least for name, least in MET.items()), said
    if case == "published":
        assert counts["exploration"] > 0 and counts["recovery"] > 0, said
