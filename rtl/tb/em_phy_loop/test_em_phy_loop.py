"""Both edges of a link in a loop: full use of the slots, bounded waits, Ethernet bit for bit."""

import subprocess

import pytest

from flow import replay, tools

BENCH = tools.RTL / "tb" / "em_phy_loop" / "measure.cpp"
# PCS of both directions: multiplexer and scrambler, descrambler and extraction.
PCS_CYCLES = 4
# Blocks of the longest unit, an acknowledged write of 256 B: K of docs/internals/edm-phy.md.
LONGEST = 35
IFG_AND_PREAMBLE_BYTES = 20
# What the receiver stores before it hands up.
FRAME_BLOCKS_MAX = 1132


def units(*kinds):
    """The blocks of the messages of golden/wire, a line each."""
    rows = tools.golden_rows("messages.csv")
    return [row["blocks"] for row in rows if not kinds or row["kind"] in kinds]


def measured(lines, *arguments, few=0):
    """What the bench measures with these units of memory; `few` is for fewer registers."""
    program = replay.program("em_phy_loop", BENCH, {"FewStages": few})
    command = [program, *(str(argument) for argument in arguments)]
    done = subprocess.run(
        command, input="\n".join(lines), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    return {name: int(value) for name, value in (w.split("=") for w in done.stdout.split())}


def longest():
    """A unit of K blocks."""
    return next(line for line in units("acknowledged_write") if len(line.split()) == LONGEST)


def test_a_stream_of_memory_blocks_uses_every_slot():
    found = measured(units(), "stream")
    # The last message is under way.
    assert found["used"] == found["slots"] and found["sound"] > 1000, found
    assert found["cycles"] == PCS_CYCLES


def test_with_few_stages_each_end_is_a_cycle_less_and_all_else_the_same():
    found = measured(units(), "stream", few=1)
    assert found["used"] == found["slots"] and found["sound"] > 1000, found
    assert found["cycles"] == PCS_CYCLES - 2
    lines = [longest(), units("notification")[0], longest()]
    assert measured(lines, "wait", 1, 0, 1518, few=1)["worst"] == LONGEST - 1
    beside = [measured([longest()], "beside", 1, 50, 1518, few=few) for few in (0, 1)]
    assert beside[1]["frames"] >= beside[0]["frames"] - 1 > 0, beside


def test_a_read_request_is_two_blocks():
    rows = tools.golden_rows("messages.csv")
    short = [r for r in rows if r["kind"] == "read_request" and "address_bits=40" in r["fields"]]
    assert short and all(len(row["blocks"].split()) == 2 for row in short)
    assert measured([row["blocks"] for row in short], "stream")["sound"] > 49_000


@pytest.mark.parametrize("frame_bytes", [1518, 9018])
@pytest.mark.parametrize(
    ("strict", "single", "bound"),
    [
        (False, True, LONGEST),
        (False, False, 2 * LONGEST - 1),
        (True, True, LONGEST - 1),
        (True, False, LONGEST - 1),
    ],
)
def test_memory_waits_no_longer_than_is_documented(frame_bytes, strict, single, bound):
    # What goes before, and what waits.
    lines = [longest(), units("notification")[0], longest()]
    found = measured(lines, "wait", int(strict), int(single), frame_bytes)
    assert found["worst"] == bound, found
    assert found["blocks"] == LONGEST and found["phases"] > frame_bytes // 8, found


@pytest.mark.parametrize("frame_bytes", [64, 1518, 9018])
@pytest.mark.parametrize("percent", [0, 50, 95])
def test_ethernet_passes_bit_for_bit_in_the_slots_that_memory_leaves(percent, frame_bytes):
    found = measured(units(), "beside", 1, percent, frame_bytes)
    slots = found["slots"]
    # A message may wait, and frames be under way.
    assert abs(found["memory"] * 100 - slots * percent) <= 100 * 520, found
    # With gaps of 12 octets on average; fewer, where memory goes in all of them.
    left = slots - found["memory"]
    least = 8 * left // (frame_bytes + IFG_AND_PREAMBLE_BYTES)
    most = left // (frame_bytes // 8 + 2)
    under_way = 3 + FRAME_BLOCKS_MAX * 8 // frame_bytes
    assert least - under_way <= found["frames"] <= most, (least, most, found)
