"""em_scrambler puts on the line what golden/wire/scrambler.csv says, gaps or not."""

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge

from flow import bench, simulate, tools


def test_em_scrambler():
    simulate.cocotb("em_scrambler", __name__)


@cocotb.test()
@cocotb.parametrize(share=[1.0, 0.4])
async def the_line_is_the_golden_one(dut, share):
    dut.valid_i.value = dut.payload_i.value = 0
    await bench.start(dut.clk_i, [dut.rst_ni])
    draws = bench.rng()
    for row in tools.golden_rows("scrambler.csv"):
        while draws.random() >= share:
            dut.valid_i.value, dut.payload_i.value = 0, draws.getrandbits(64)
            await FallingEdge(dut.clk_i)
        dut.valid_i.value, dut.payload_i.value = 1, int(row["payload"], 16)
        await RisingEdge(dut.clk_i)
        assert int(dut.line_o.value) == int(row["line"], 16)
        await FallingEdge(dut.clk_i)
