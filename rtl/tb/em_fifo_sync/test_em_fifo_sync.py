"""em_fifo_sync: every word once and in order, whatever the gaps; full after Depth words."""

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge

from flow import bench, simulate

WORDS = 400


@pytest.mark.parametrize(("width", "depth"), [(8, 1), (66, 4), (33, 5)])
def test_em_fifo_sync(width, depth):
    parameters = {"Width": width, "Depth": depth}
    simulate.cocotb("em_fifo_sync", __name__, parameters)


@cocotb.test()
@cocotb.parametrize(shares=[(1.0, 1.0), (0.3, 1.0), (1.0, 0.3), (0.5, 0.5)])
async def words_pass_in_order(dut, shares):
    await bench.start(dut.clk_i, [dut.rst_ni])
    draws = bench.rng()
    words = [draws.getrandbits(len(dut.data_i)) for _ in range(WORDS)]
    clock = dut.clk_i
    dut.valid_i.value = 0
    cocotb.start_soon(
        bench.send(clock, dut.valid_i, dut.ready_o, dut.data_i, words, bench.rng(1), shares[0])
    )
    got = await bench.receive(
        clock, dut.valid_o, dut.ready_i, dut.data_o, WORDS, bench.rng(2), shares[1]
    )
    assert got == words
    assert int(dut.valid_o.value) == 0 and int(dut.count_o.value) == 0


@cocotb.test()
async def it_holds_depth_words_and_not_one_more(dut):
    depth = int(dut.Depth.value)
    dut.valid_i.value, dut.ready_i.value, dut.data_i.value = 0, 0, 5
    await bench.start(dut.clk_i, [dut.rst_ni])
    dut.valid_i.value = 1
    for count in range(depth + 3):
        await RisingEdge(dut.clk_i)
        assert int(dut.count_o.value) == min(count, depth)
        assert int(dut.ready_o.value) == (count < depth)
        # A word is visible in the cycle after it was written.
        assert int(dut.valid_o.value) == (count > 0)
        await FallingEdge(dut.clk_i)
