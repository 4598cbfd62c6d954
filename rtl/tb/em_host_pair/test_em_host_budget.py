"""The cycles of each stage of the published budget, and that a stream of data has no gaps."""

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge
from cocotb.utils import get_sim_time
from host_world import (
    ACKNOWLEDGED,
    CHUNK_BYTES,
    END,
    FETCH_AND_ADD,
    GRANT,
    POSTED,
    READ,
    START,
    Op,
    World,
    bits,
    block,
    content_of,
)

from flow import simulate, structs

PERIOD_PS = 2560
GENERATE_REQUEST, RECEIVE_GRANT, GRANT_QUEUE, GENERATE_DATA = 2, 2, 4, 3
RECEIVE_REQUEST = RECEIVE_DATA = 3
CROSSING = 4
VALID, FIRST, LAST = 70, 69, 68
SHARE_LEAST = 0.99


def test_em_host_budget():
    simulate.cocotb("em_host_pair", __name__, {"X": 3})


class Probe:
    """The edges, counted from the start, at which signals of a host were seen high."""

    def __init__(self, dut, h):
        host = dut.gen_hosts[h].u_host
        self.seen = {}
        watched = {
            dut.tx_clk_i: {
                "request": lambda: self.both(dut.request_valid_i, dut.request_ready_o, h),
                "sent": lambda: int(dut.memory_o.value) >> 69 * h + 68 & 1,
                "item_tx": lambda: structs.HOST_RX_TO_TX.unpack(host.tx_in.value).item_valid,
                "response_tx": lambda: (
                    structs.HOST_RX_TO_TX.unpack(host.tx_in.value).response_valid
                ),
            },
            dut.rx_clk_i: {
                "came": lambda: int(dut.memory_i.value) >> 71 * h + LAST & 1,
                "item_rx": lambda: structs.HOST_RX_TO_TX.unpack(host.rx_out.value).item_valid,
                "address": lambda: int(dut.arvalid_o.value) >> h & 1,
                "write": lambda: int(dut.wvalid_o.value) >> h & 1,
                "read": lambda: int(dut.read_valid_o.value) >> h & 1,
                "answer": lambda: self.both(dut.rvalid_i, dut.rready_o, h),
            },
        }
        for clock, signals in watched.items():
            cocotb.start_soon(self.watch(clock, signals))

    @staticmethod
    def both(valid, ready, h):
        """A handshake of a host."""
        return int(valid.value) & int(ready.value) & 1 << h

    async def watch(self, clock, signals):
        """Notes the first edge of each."""
        while True:
            await RisingEdge(clock)
            edge = round(get_sim_time("ps") / PERIOD_PS)
            for name, is_high in signals.items():
                if name not in self.seen and is_high():
                    self.seen[name] = edge

    def clear(self):
        """Looks for the next ones."""
        self.seen.clear()

    def cycles(self, first, then):
        """Edges from one to the other."""
        return self.seen[then] - self.seen[first]


async def world_of(dut):
    """No gap but the hosts' own; the transmit clock's edges just miss those of the other."""
    world = World(dut, share=1.0, delay_max=0, size=4096)
    world.grant_share = 1.0
    await world.start(rx_phase_ps=1)
    return world


async def until(dut, condition):
    """Waits."""
    for _ in range(2000):
        await FallingEdge(dut.tx_clk_i)
        if condition():
            return
    raise AssertionError("nothing came")


@cocotb.test()
async def a_read_takes_the_cycles_of_the_budget(dut):
    world = await world_of(dut)
    compute, memory = Probe(dut, 0), Probe(dut, 1)
    op = world.submit(0, Op(READ, 64, 64))
    await until(dut, lambda: op.done)
    assert compute.cycles("request", "sent") == GENERATE_REQUEST
    assert memory.cycles("came", "address") == RECEIVE_REQUEST
    assert memory.cycles("item_rx", "item_tx") == GRANT_QUEUE
    # Data crosses as a grant does. The last word comes 7 after the first, and finds the first two
    # cycles of generating done while memory worked.
    assert memory.cycles("answer", "response_tx") == CROSSING
    assert memory.cycles("response_tx", "sent") == 7 + GENERATE_DATA - 2
    assert compute.cycles("came", "read") == RECEIVE_DATA


@cocotb.test()
@cocotb.parametrize(opcode=[POSTED, ACKNOWLEDGED])
async def a_write_takes_the_cycles_of_the_budget(dut, opcode):
    world = await world_of(dut)
    compute, memory = Probe(dut, 0), Probe(dut, 1)
    op = world.submit(0, Op(opcode, 64, 64, data=bytes(range(64))))
    await until(dut, lambda: "sent" in compute.seen)
    assert compute.cycles("request", "sent") == GENERATE_REQUEST
    await FallingEdge(dut.tx_clk_i)
    del compute.seen["sent"]
    await until(dut, lambda: "sent" in compute.seen)
    assert compute.cycles("came", "item_rx") == RECEIVE_GRANT
    assert compute.cycles("item_rx", "item_tx") == GRANT_QUEUE
    assert compute.cycles("item_tx", "sent") == GENERATE_DATA
    await until(dut, lambda: op.done and "write" in memory.seen)
    assert memory.cycles("came", "write") == RECEIVE_DATA


async def share_of_slots(dut, h, count):
    """How many of the slots of `count` blocks of a host were used."""
    used, slots = 0, 0
    while used < count:
        await RisingEdge(dut.tx_clk_i)
        used += int(dut.memory_o.value) >> 69 * h + 68 & 1
        slots += 1
    return used / slots


@cocotb.test()
@cocotb.parametrize(length=[64, 256, 1024])
async def writes_follow_each_other_without_a_gap(dut, length):
    world = await world_of(dut)
    for _ in range(20_000 // length):
        world.submit(0, Op(POSTED, 0, length, data=bytes(length)))
    await until(dut, lambda: world.submitted[0] > 5)
    assert await share_of_slots(dut, 0, 1000) > SHARE_LEAST


@cocotb.test()
@cocotb.parametrize(length=[64, 256, 1024])
async def responses_follow_each_other_without_a_gap(dut, length):
    """Two nodes read with all their rows: each asks anew when its last response has ended."""
    world = await world_of(dut)

    def ask(peer, row, generation):
        name = (generation & 15) << 3 | row
        content = length << 21 | name << 13 | peer << 4
        world.forward(1, [block(START, content | READ), block(END, 64 * row)])
        for left in range(length - CHUNK_BYTES, 0, -CHUNK_BYTES):
            content = min(left, CHUNK_BYTES) << 21 | name << 13 | peer << 4 | 1
            world.forward(1, [block(GRANT, content)])

    def answered(_, unit):
        word = content_of(unit[0])
        rows.append((word & 15, bits(word, 24, 1), bits(word, 13, 3)))
        if bits(word, 24, 1):
            peer, row, generation = order.pop(0)
            assert bits(word, 13, 8) == (generation & 15) << 3 | row
            ask(peer, row, generation + 1)
            order.append((peer, row, generation + 1))

    rows, order = [], [(peer, row, 0) for row in range(3) for peer in (1, 3)]
    world.switch = answered
    for asked in order:
        ask(*asked)
    await until(dut, lambda: len(rows) > 8)
    assert await share_of_slots(dut, 1, 1000) > SHARE_LEAST


@cocotb.test()
async def an_atomic_passes(dut):
    world = await world_of(dut)
    op = world.submit(0, Op(FETCH_AND_ADD, 0, 8, operands=(1, 0)))
    await until(dut, lambda: op.done)
