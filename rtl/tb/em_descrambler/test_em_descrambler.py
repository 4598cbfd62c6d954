"""em_descrambler takes from the line what golden/wire/scrambler.csv says, gaps or not."""

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge

from flow import bench, simulate, tools


def test_em_descrambler():
    simulate.cocotb("em_descrambler", __name__)


async def descrambled(dut, lines, share=1.0):
    """What comes of each block of the line."""
    dut.valid_i.value = dut.line_i.value = 0
    await bench.start(dut.clk_i, [dut.rst_ni])
    draws, payloads = bench.rng(), []
    for line in lines:
        while draws.random() >= share:
            dut.valid_i.value, dut.line_i.value = 0, draws.getrandbits(64)
            await FallingEdge(dut.clk_i)
        dut.valid_i.value, dut.line_i.value = 1, line
        await RisingEdge(dut.clk_i)
        payloads.append(int(dut.payload_o.value))
        await FallingEdge(dut.clk_i)
    return payloads


def golden(column):
    """A column of the golden table."""
    return [int(row[column], 16) for row in tools.golden_rows("scrambler.csv")]


@cocotb.test()
@cocotb.parametrize(share=[1.0, 0.4])
async def the_payload_is_the_golden_one(dut, share):
    assert await descrambled(dut, golden("line"), share) == golden("payload")


@cocotb.test()
@cocotb.parametrize(bit=[0, 5, 6, 24, 25, 63])
async def one_wrong_bit_becomes_three(dut, bit):
    lines = golden("line")
    lines[2] ^= 1 << bit
    wrong = [a ^ b for a, b in zip(await descrambled(dut, lines), golden("payload"), strict=True)]
    spread = sum(1 << bit + late for late in (0, 39, 58))
    assert wrong[2:4] == [spread & (1 << 64) - 1, spread >> 64]
    assert not any(wrong[:2] + wrong[4:])
