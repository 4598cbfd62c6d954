"""Two hosts and a scripted switch: every byte and every order, against a reference memory."""

import os

import cocotb
import pytest
from host_world import World, expect, random_op

from flow import simulate

# A message takes some 50 cycles of both hosts.
MESSAGES = int(os.environ.get("RTL_CYCLES", "5000")) // 50


@pytest.mark.parametrize("x", [3, 1])
def test_em_host_pair(x):
    simulate.cocotb("em_host_pair", __name__, {"X": x})


def test_the_most_nodes_and_messages():
    last = {"HOST_NODES": "510 511"}
    simulate.cocotb("em_host_pair", __name__, {"Nodes": 512, "X": 8}, environment=last)


async def traffic(world, count, size):
    """Random requests of both hosts end well and read what the order of the pair says."""
    mirrors = [bytearray(memory.data) for memory in world.memories]
    for h in (0, 1):
        for _ in range(count):
            op = random_op(world.draws, size)
            expect(op, mirrors[1 - h])
            world.submit(h, op)
    await world.finished(2000 * count)
    assert world.lost == [0, 0]
    for h in (0, 1):
        for i, op in enumerate(world.ops[h]):
            assert op.done == op.completion, (h, i, op)
            if op.expected is not None:
                assert op.got == op.expected, (h, i, op)
        assert world.memories[h].data == mirrors[h]


@cocotb.test()
async def data_stays_until_a_slow_transmitter_has_taken_it(dut):
    world = World(dut, share=1.0, delay_max=0, size=4096)
    world.ready_share = 0.3
    await world.start()
    await traffic(world, 40, 4096)


@cocotb.test()
@cocotb.parametrize(world_of=[(1.0, 0), (0.6, 30)], clocks=[(2560, 2560), (2560, 2566)])
async def random_traffic_arrives_whole_and_in_order(dut, world_of, clocks):
    share, delay_max = world_of
    world = World(dut, share=share, delay_max=delay_max, size=4096)
    await world.start(*clocks)
    await traffic(world, MESSAGES, 4096)
