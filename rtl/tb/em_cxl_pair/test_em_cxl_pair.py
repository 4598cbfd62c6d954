"""Two packet managers over a bad network: every request once, in order and as it was."""

import os
import subprocess

import pytest

from flow import replay, tools

REQUESTS = int(os.environ.get("RTL_CYCLES", "100000")) // 20
SEED = int(os.environ.get("RTL_SEED", "1"))
BENCH = tools.RTL / "tb" / "em_cxl_pair" / "replay.cpp"
INITIAL = f"32'h{2**32 - 1000:x}"


def carried(kind, window, *arguments, entries=64):
    parameters = {"Window": window, "Initial": INITIAL, "GoBackN": int(kind == "go-back-n")}
    program = replay.program("em_cxl_pair", BENCH, parameters | {"Entries": entries})
    said, code = replay.replayed(program, subprocess.DEVNULL, REQUESTS, *arguments, SEED)
    assert code == 0, said
    return {name: int(count) for name, count in (word.split("=") for word in said.split())}


# A MAC that takes a beat in few cycles fills what waits to depart.
@pytest.mark.parametrize("ready_percent", [90, 30])
def test_a_good_network_needs_no_second_frame(ready_percent):
    counts = carried("selective", 64, 0, 0, 0, 0, ready_percent, 60)
    assert counts["why_3"] == counts["arrival_0"] == REQUESTS, counts
    assert counts["frames"] == 2 * REQUESTS and counts["dropped"] == 0, counts


# Loss, duplicates and damage of 10,000 frames, jitter in cycles, shares of cycles in which a MAC
# takes a beat and in which the FIFO drains.
NETWORKS = {
    "loss": (100, 0, 0, 0, 90, 60),
    "everything": (200, 200, 100, 300, 90, 60),
    "worst": (1_500, 500, 500, 1_000, 90, 60),
}


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("kind", ["selective", "go-back-n"])
def test_a_bad_network_loses_doubles_and_reorders_nothing(kind, network):
    counts = carried(kind, 64, *NETWORKS[network])
    assert counts["lost"] > REQUESTS // 200, counts
    assert counts["why_0"] + counts["why_1"] > 0, counts
    if network != "loss":
        assert counts["arrival_3"] > 0 and counts["damaged"] > 0, counts


def test_a_fifo_that_overflows_is_a_loss_and_the_rate_comes_down():
    counts = carried("selective", 64, 0, 0, 0, 0, 90, 2)
    assert counts["pfc"] > 0 and counts["dropped"] > 0 and counts["arrival_1"] > 0, counts
