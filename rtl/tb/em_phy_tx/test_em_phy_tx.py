"""em_phy_tx does slot by slot what TxArbiter and the sending half of LinkFaults do."""

import os

import pytest

from flow import replay, tools

SLOTS = int(os.environ.get("RTL_CYCLES", "100000"))
SEED = int(os.environ.get("RTL_SEED", "1"))
BENCH = tools.RTL / "tb" / "em_phy_tx" / "replay.cpp"


@pytest.mark.parametrize("arbitration", ["fair", "strict"])
@pytest.mark.parametrize("share", [100, 60])
def test_every_slot_is_the_models(arbitration, share):
    program = replay.program("em_phy_tx", BENCH)
    wanted = arbitration, SLOTS, SEED + share
    strict = int(arbitration == "strict")
    said, code = replay.replay_model(program, "link_trace", wanted, share, strict)
    assert code == 0, said
    counts = {name: int(count) for name, count in (word.split("=") for word in said.split())}
    assert counts["slots"] == SLOTS
    assert min(counts[name] for name in ("taken", "frame_blocks", "held", "down")) > SLOTS // 100
