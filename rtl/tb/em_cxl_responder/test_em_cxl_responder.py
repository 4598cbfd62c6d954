"""em_cxl_responder does step by step what the memory node's Responder of crates/cxl does."""

import os

import pytest

from flow import replay, tools

STEPS = int(os.environ.get("RTL_CYCLES", "100000")) // 4
SEED = int(os.environ.get("RTL_SEED", "1"))
BENCH = tools.RTL / "tb" / "em_cxl_responder" / "replay.cpp"
# The model begins 1000 before the numbers go round.
INITIAL = f"32'h{2**32 - 1000:x}"
# Of 25,000 steps: every arrival, every packet.
MET = {f"arrival_{n}": 100 for n in (0, 1, 3, 4, 5)}
MET |= {"responses": 1000, "merged": 100, "negatives": 100, "issued": 1000}


def replayed(kind, window, share):
    parameters = {"Window": window, "Initial": INITIAL, "GoBackN": int(kind == "go-back-n")}
    program = replay.program("em_cxl_responder", BENCH, parameters, {"WINDOW": window})
    wanted = kind, window, STEPS, SEED + window
    said, code = replay.replay_model(
        program, "responder_trace", wanted, share, crate="ethermem-cxl"
    )
    assert code == 0, said
    return {name: int(count) for name, count in (word.split("=") for word in said.split())}


@pytest.mark.parametrize(("window", "share"), [(8, 100), (8, 60), (512, 100)])
def test_selective(window, share):
    counts = replayed("selective", window, share)
    assert all(counts.get(name, 0) >= least for name, least in MET.items()), counts


def test_go_back_n():
    counts = replayed("go-back-n", 8, 90)
    assert counts["arrival_2"] > 100 and counts["negatives"] > 50 and counts["issued"] > 500, counts
