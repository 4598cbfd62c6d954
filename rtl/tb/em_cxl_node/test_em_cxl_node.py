"""A processor's loads and stores through a compute node, a bad network and a memory node."""

import os
import subprocess

import pytest

from flow import replay, tools

ACCESSES = int(os.environ.get("RTL_CYCLES", "100000")) // 10
SEED = int(os.environ.get("RTL_SEED", "1"))
BENCH = tools.RTL / "tb" / "em_cxl_node" / "replay.cpp"
# Loss, duplicates and damage of 10,000 frames, jitter in cycles, lines, and whether some pages
# fail.
NETWORKS = {
    "good": (0, 0, 0, 0, 20, 0),
    "bad": (200, 200, 100, 300, 20, 0),
    "hits": (100, 0, 0, 0, 3, 0),
    "failing": (100, 100, 50, 100, 12, 1),
}


@pytest.mark.parametrize("network", NETWORKS)
def test_every_load_brings_what_was_stored(network):
    program = replay.program("em_cxl_node", BENCH)
    said, code = replay.replayed(program, subprocess.DEVNULL, ACCESSES, *NETWORKS[network], SEED)
    assert code == 0, said
    counts = {name: int(count) for name, count in (word.split("=") for word in said.split())}
    assert counts["loads"] + counts["stores"] >= ACCESSES // 4, counts
    bursts = "read_bursts", "write_bursts", "addresses_ahead"
    assert min(counts[name] for name in bursts) > ACCESSES // 50, counts
    if network == "hits":
        assert counts["fetches"] * 100 < counts["loads"] and counts["lines_back"] > 3, counts
    else:
        assert min(counts[name] for name in ("fetches", "lines_back", "parts_back")) > 100, counts
        assert counts["flushes"] > 3 and counts["most_waiting"] > 3, counts
    if network == "failing":
        assert min(counts[name] for name in ("load_errors", "store_errors", "lines_lost")) > 20
