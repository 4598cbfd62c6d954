"""em_phy_rx takes each message of golden/wire, and finds each of its errors of the line."""

import cocotb
from cocotb.triggers import FallingEdge

from flow import bench, simulate, structs, tools

IDLE = 0x1E << 2 | 1
VALID = 1 << structs.LINE_SLOT.bits - 1
# The first of the ten of `rx_events_t`.
CORRUPT_BIT = 9
LATENCY_CYCLES = 2
MT, MASK = 0xCC, (1 << 66) - 1


def test_em_phy_rx_golden():
    simulate.cocotb("em_phy_rx", __name__, {"Scrambled": 0})


async def start(dut):
    dut.line_i.value, dut.signal_i.value = IDLE, 1
    dut.fail_i.value = dut.allow_i.value = 0
    await bench.start(dut.clk_i, [dut.rst_ni])


async def reset(dut):
    """An end that is up, with nothing under way."""
    dut.line_i.value, dut.rst_ni.value = IDLE, 0
    await FallingEdge(dut.clk_i)
    dut.rst_ni.value = 1


async def hear(dut, blocks):
    """What the blocks bring: memory blocks with first, last and ending; whether it is corrupt."""
    memory, corrupt = [], False
    for block in [*blocks, *[IDLE] * LATENCY_CYCLES]:
        dut.line_i.value = VALID | block
        await FallingEdge(dut.clk_i)
        corrupt |= bool(int(dut.events_o.value) >> CORRUPT_BIT & 1)
        word = int(dut.memory_o.value)
        if word >> 70:
            last = word >> 68 & 1
            memory.append((word & MASK, word >> 69 & 1, last, word >> 66 & 3 if last else 0))
    return memory, corrupt


@cocotb.test()
async def every_message_goes_on_block_by_block_and_ends_sound(dut):
    await start(dut)
    for row in tools.golden_rows("messages.csv"):
        blocks = [int(text, 16) for text in row["blocks"].split()]
        memory, corrupt = await hear(dut, blocks)
        last = len(blocks) - 1
        expected = [(b, int(i == 0), int(i == last), 0) for i, b in enumerate(blocks)]
        assert memory == expected and not corrupt, row


@cocotb.test()
async def every_error_of_the_line_is_corruption(dut):
    await start(dut)
    for row in tools.golden_rows("errors.csv"):
        await reset(dut)
        received = int(row["received"], 16)
        memory, corrupt = await hear(dut, [received])
        # A data block is stray here, and so is the end of a message.
        valid = row["verdict"] == "valid" and received >> 10 & 0xFF != MT
        opens = valid and received >> 10 & 0xFF == 0x33
        assert corrupt == (not valid or opens), row
        assert bool(memory) == valid, row
