"""em_cxl_tx sends the octets of crates/wire, and em_cxl_rx has its verdict on any octets."""

import os

import pytest

from flow import replay, tools

FRAMES = int(os.environ.get("RTL_CYCLES", "100000")) // 4
SEED = int(os.environ.get("RTL_SEED", "1"))
BENCH = tools.RTL / "tb" / "em_cxl_codec" / "replay.cpp"
# Of 25,000 frames: every fault.
MET = {f"fault_{fault}": 20 for fault in range(10)} | {"sent": 1000, "longest": 100, "errors": 100}


@pytest.mark.parametrize("share", [100, 50])
def test_every_frame_is_the_codecs(share):
    program = replay.program("em_cxl_codec", BENCH)
    wanted = FRAMES, SEED + share
    said, code = replay.replay_model(program, "codec_trace", wanted, share, crate="ethermem-cxl")
    assert code == 0, said
    counts = {name: int(count) for name, count in (word.split("=") for word in said.split())}
    assert all(counts.get(name, 0) >= least for name, least in MET.items()), said
