"""em_phy_rx does slot by slot what RxExtractor and LinkFaults of crates/edm do."""

import os

import pytest

from flow import replay, tools

SLOTS = int(os.environ.get("RTL_CYCLES", "100000"))
SEED = int(os.environ.get("RTL_SEED", "1"))
BENCH = tools.RTL / "tb" / "em_phy_rx" / "replay.cpp"
# What every long trace has met; frames that are too long or corrupt come in most.
MET = {"sound": 100, "refused": 10, "aborted": 10, "frames": 10, "corrupt": 10, "failed": 3}
MET |= {"started": 10, "messages_aborted": 2, "frames_aborted": 2}


@pytest.mark.parametrize("arbitration", ["fair", "strict"])
@pytest.mark.parametrize("share", [100, 60])
def test_every_slot_is_the_models(arbitration, share):
    program = replay.program("em_phy_rx", BENCH)
    wanted = arbitration, SLOTS, SEED + share
    said, code = replay.replay_model(program, "link_trace", wanted, share)
    assert code == 0, said
    counts = dict(word.split("=") for word in said.split())
    assert int(counts.pop("slots")) == SLOTS
    assert all(int(counts[name]) >= least for name, least in MET.items()), said
