"""em_switch_counters: each event of a port is counted once, and in its own register."""

import cocotb
from cocotb.triggers import FallingEdge

from flow import bench, registerbus, simulate

# As they follow each other in the register file.
COUNTERS = [
    *("failures", "chunks_astray", "chunks_aborted", "chunk_overflows", "demands_refused"),
    *("messages_unexpected", "statuses_dropped"),
    *("frames_dropped", "frames_filtered", "frames_flooded"),
]
# em_switch_pkg's events_t and em_l2_pkg's l2_events_t, from their least bit on.
EVENTS = [
    *("failures", "statuses_dropped", "messages_unexpected", "demands_refused"),
    *("chunk_overflows", "chunks_aborted", "chunks_astray"),
]
FRAMES = ["frames_flooded", "frames_filtered", "frames_dropped"]


def test_em_switch_counters():
    simulate.cocotb("em_switch_counters", __name__)


async def happen(dut, names):
    """A cycle with these events."""
    for port, known in [(dut.events_i, EVENTS), (dut.l2_events_i, FRAMES)]:
        port.value = sum(1 << bit for bit, name in enumerate(known) if name in names)
    await FallingEdge(dut.clk_i)
    dut.events_i.value = dut.l2_events_i.value = 0


async def counted(dut):
    """All counters, as they follow each other."""
    return [await registerbus.read64(dut, dut.clk_i, 8 * place) for place in range(len(COUNTERS))]


async def begin(dut):
    dut.bus_i.value = dut.events_i.value = dut.l2_events_i.value = 0
    await bench.start(dut.clk_i, [dut.rst_ni])


@cocotb.test()
async def an_event_is_counted_where_it_belongs(dut):
    await begin(dut)
    wanted = [0] * len(COUNTERS)
    for place, name in enumerate(COUNTERS):
        await happen(dut, {name})
        wanted[place] = 1
        assert await counted(dut) == wanted, name


@cocotb.test()
async def events_of_a_cycle_are_all_counted(dut):
    await begin(dut)
    random, wanted = bench.rng(), dict.fromkeys(COUNTERS, 0)
    for _ in range(500):
        names = {name for name in COUNTERS if random.random() < 0.5}
        await happen(dut, names)
        for name in names:
            wanted[name] += 1
    assert await counted(dut) == list(wanted.values())
