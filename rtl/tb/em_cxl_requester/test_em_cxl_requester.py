"""em_cxl_requester does step by step what the compute node's Requester of crates/cxl does."""

import os

import pytest

from flow import replay, tools

STEPS = int(os.environ.get("RTL_CYCLES", "100000")) // 4
SEED = int(os.environ.get("RTL_SEED", "1"))
BENCH = tools.RTL / "tb" / "em_cxl_requester" / "replay.cpp"
# The model begins 1000 before the numbers go round.
INITIAL = f"32'h{2**32 - 1000:x}"
RETRY_CYCLES = 150
# Of 25,000 steps: every receipt, and every reason to send.
MET = {f"response_{n}": 50 for n in range(4)} | {f"why_{n}": 50 for n in range(4)}
MET |= {"why_2": 5, "negative_0": 50, "negative_1": 50, "delivered": 1000}


def replayed(kind, window, slots, share):
    parameters = {"Window": window, "Slots": slots, "Initial": INITIAL}
    parameters |= {"GoBackN": int(kind == "go-back-n"), "RetryCycles": RETRY_CYCLES}
    program = replay.program("em_cxl_requester", BENCH, parameters)
    wanted = kind, window, slots, RETRY_CYCLES, STEPS, SEED + window
    said, code = replay.replay_model(
        program, "requester_trace", wanted, share, crate="ethermem-cxl"
    )
    assert code == 0, said
    counts = {name: int(count) for name, count in (word.split("=") for word in said.split())}
    assert all(counts.get(name, 0) >= least for name, least in MET.items()), said


@pytest.mark.parametrize(
    ("window", "slots", "share"), [(12, 16, 100), (12, 16, 60), (512, 1024, 100)]
)
def test_selective(window, slots, share):
    replayed("selective", window, slots, share)


def test_go_back_n():
    replayed("go-back-n", 12, 16, 90)
