"""em_link, its line looped back: it starts, fails, is held and counts as its registers say."""

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge

from flow import bench, registerbus, simulate, structs
from flow.switching import control

CONTROL, STATUS, CORRUPT, CORRUPT_CONTROL, CORRUPT_MESSAGE = 0x00, 0x08, 0x10, 0x18, 0x20
REMOTE_FAILED, STARTED, SLIPS, SENT, RECEIVED = 0x30, 0x38, 0x40, 0x78, 0x80
NOWHERE = 0x100
START, HOLD = 1, 2
UP, LOCK, HELD = 1, 2, 8
NOTIFICATION = 0x55


@pytest.mark.parametrize("down_cycles", [8, 150])
def test_em_link(down_cycles):
    simulate.cocotb("em_link", __name__, {"DownCycles": down_cycles})


class Line:
    """What leaves comes back in the next cycle, with bits flipped where it is asked for."""

    def __init__(self, dut):
        self.dut, self.flips, self.header = dut, [], None

    async def carry(self):
        dut = self.dut
        while True:
            await RisingEdge(dut.tx_clk_i)
            slot = structs.LINE_SLOT.unpack(dut.line_o.value)
            await FallingEdge(dut.tx_clk_i)
            if slot.valid and self.flips:
                slot.payload ^= self.flips.pop(0)
            if self.header is not None:
                slot.header = self.header
            dut.line_i.value = structs.LINE_SLOT.pack(**vars(slot))


async def begin(dut):
    for name in ("memory_i", "bus_i", "fail_i"):
        getattr(dut, name).value = 0
    dut.line_i.value = dut.encoded_i.value = structs.LINE_SLOT.pack(header=1)
    dut.line_signal_i.value = dut.line_tx_slot_i.value = dut.settled_i.value = 1
    clock = dut.tx_clk_i
    dut.rx_rst_ni.value = 0
    cocotb.start_soon(same_clock(dut))
    await bench.start(clock, [dut.tx_rst_ni, dut.rx_rst_ni])
    line = Line(dut)
    cocotb.start_soon(line.carry())
    return line


async def same_clock(dut):
    """One clock is the other."""
    while True:
        await dut.tx_clk_i.value_change
        dut.rx_clk_i.value = dut.tx_clk_i.value


async def read(dut, address):
    return await registerbus.read(dut, dut.tx_clk_i, address)


async def write(dut, address, data):
    await registerbus.write(dut, dut.tx_clk_i, address, data)


async def wait(dut, cycles):
    for _ in range(cycles):
        await FallingEdge(dut.tx_clk_i)


async def status(dut):
    await wait(dut, 4)
    return await read(dut, STATUS)


async def send(dut, count):
    """Sends so many messages of one block."""
    block = control(NOTIFICATION, 64 << 21 | 1 << 4) << 2 | 1
    for _ in range(count):
        dut.memory_i.value = 1 << 68 | 1 << 66 | block
        while True:
            await RisingEdge(dut.tx_clk_i)
            taken = int(dut.memory_ready_o.value)
            await FallingEdge(dut.tx_clk_i)
            if taken:
                break
        dut.memory_i.value = 0


@cocotb.test()
async def it_starts_when_software_says_so(dut):
    await begin(dut)
    await wait(dut, 300)
    assert await status(dut) == LOCK
    await write(dut, CONTROL, START)
    await wait(dut, 250)
    assert await status(dut) == LOCK | UP
    assert await read(dut, STARTED) == 1
    await write(dut, CONTROL, 0)
    await wait(dut, 20)
    assert await status(dut) == LOCK
    nowhere = registerbus.Request(True, False, NOWHERE, 0)
    there, _ = await registerbus.access(dut, dut.tx_clk_i, nowhere)
    assert not there


@cocotb.test()
async def it_counts_the_blocks_of_memory(dut):
    await begin(dut)
    await write(dut, CONTROL, START)
    await wait(dut, 300)
    await send(dut, 25)
    await wait(dut, 30)
    assert (await read(dut, SENT), await read(dut, RECEIVED)) == (25, 25)
    assert (await read(dut, SENT + 4), await read(dut, RECEIVED + 4)) == (0, 0)


@cocotb.test()
async def corruption_holds_the_link_down_if_software_wants_it(dut):
    line = await begin(dut)
    await write(dut, CONTROL, START | HOLD)
    await wait(dut, 300)
    assert await status(dut) & UP
    # Octet 0 of an idle becomes a type that there is not.
    line.flips = [1]
    await wait(dut, 300)
    assert await status(dut) == LOCK | HELD
    assert await read(dut, CORRUPT) == 1 and await read(dut, CORRUPT_CONTROL) == 1
    assert await read(dut, CORRUPT_MESSAGE) == 0
    await write(dut, CONTROL, HOLD)
    await wait(dut, 10)
    await write(dut, CONTROL, START | HOLD)
    await wait(dut, 250)
    assert await status(dut) == LOCK | UP
    assert await read(dut, STARTED) == 2


@cocotb.test()
async def without_hold_it_starts_anew_by_itself(dut):
    line = await begin(dut)
    await write(dut, CONTROL, START)
    await wait(dut, 300)
    line.flips = [1]
    seen_down = 0
    for _ in range(300):
        await RisingEdge(dut.rx_clk_i)
        seen_down += int(dut.up_o.value) == 0
        await FallingEdge(dut.rx_clk_i)
    assert await status(dut) == LOCK | UP
    # As long as a switch needs to see it, and no link is started for.
    assert int(dut.DownCycles.value) <= seen_down < 250


@cocotb.test()
async def without_lock_it_slips_and_is_down(dut):
    line = await begin(dut)
    await write(dut, CONTROL, START)
    await wait(dut, 300)
    line.header = 0
    await wait(dut, 200)
    assert not await status(dut) & (UP | LOCK)
    assert await read(dut, SLIPS) > 5
    line.header = None
    await wait(dut, 400)
    assert await status(dut) == LOCK | UP


@cocotb.test()
async def without_a_signal_it_is_down(dut):
    await begin(dut)
    await write(dut, CONTROL, START)
    await wait(dut, 300)
    before = await read(dut, REMOTE_FAILED)
    dut.line_signal_i.value = 0
    await wait(dut, 30)
    assert not await status(dut) & UP
    assert await read(dut, REMOTE_FAILED) == before + 1
    assert await read(dut, CORRUPT) == 0


@cocotb.test()
async def it_waits_for_what_is_not_settled(dut):
    await begin(dut)
    dut.settled_i.value = 0
    await write(dut, CONTROL, START)
    await wait(dut, 400)
    assert await status(dut) == LOCK and await read(dut, STARTED) == 0
    dut.settled_i.value = 1
    await wait(dut, 250)
    assert await status(dut) == LOCK | UP and await read(dut, STARTED) == 1


@cocotb.test()
async def it_fails_when_what_is_behind_it_wants_it(dut):
    await begin(dut)
    await write(dut, CONTROL, START)
    await wait(dut, 300)
    dut.fail_i.value = 1
    await wait(dut, 1)
    assert int(dut.up_o.value) == 0
    dut.fail_i.value = 0
    await wait(dut, 250)
    assert await status(dut) == LOCK | UP and await read(dut, STARTED) == 2
    assert await read(dut, CORRUPT) == 0
