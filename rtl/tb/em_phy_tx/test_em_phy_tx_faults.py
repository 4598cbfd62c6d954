"""em_phy_tx says when its encoder or its memory side breaks its rules, and what goes out then."""

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge

from flow import bench, simulate, structs

IDLE = 0x1E << 2 | 1
ABORT = 0x3C78F1E3C78F1E1E << 2 | 1
DATA = 0x0123456789ABCDEF << 2 | 2
VALID, FRAMED, LAST = 1 << 68, 1 << 67, 1 << 66
SLOT = 1 << structs.LINE_SLOT.bits - 1
UP = 1 << 17
LATENCY_CYCLES = 2


def test_em_phy_tx_faults():
    simulate.cocotb("em_phy_tx", __name__, {"Scrambled": 0})


async def start(dut):
    dut.slot_i.value, dut.strict_i.value, dut.state_i.value = 1, 0, UP
    dut.memory_i.value, dut.encoded_i.value = 0, DATA
    await bench.start(dut.clk_i, [dut.rst_ni])


async def run(dut, cycles, answers=(), memory=()):
    """The line, and the cycles with an overrun and with a unit that ran dry."""
    line, overrun, dry = [], [], []
    for cycle in range(cycles):
        dut.encoded_i.value = (SLOT if cycle in answers else 0) | DATA
        dut.memory_i.value = memory[cycle] if cycle < len(memory) else 0
        await RisingEdge(dut.clk_i)
        overrun += [cycle] * int(dut.encoder_overrun_o.value)
        dry += [cycle] * int(dut.memory_dry_o.value)
        if (sent := int(dut.line_o.value)) & SLOT:
            line.append(sent ^ SLOT)
        await FallingEdge(dut.clk_i)
    return line, overrun, dry


@cocotb.test()
async def a_block_that_was_not_asked_for_is_dropped(dut):
    await start(dut)
    # The first question is seen in cycle 1; four go out before an answer.
    line, overrun, dry = await run(dut, 12, answers=[0, 5, 6, 7, 8])
    assert overrun == [0] and not dry
    assert [block for block in line if block != IDLE] == [DATA] * 4


@cocotb.test()
async def a_unit_that_runs_dry_is_given_up(dut):
    await start(dut)
    unit = VALID | FRAMED | DATA
    line, overrun, dry = await run(dut, 10, memory=[unit, unit, 0, 0, unit, unit | LAST])
    assert dry == [2] and not overrun
    sent = line[line.index(DATA) :]
    assert sent[:6] == [DATA, DATA, ABORT, IDLE, DATA, DATA]
