"""em_fifo_ram: as em_fifo_sync, every word once and in order, visible in the cycle after."""

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge

from flow import bench, simulate

WORDS = 600
AHEAD = 4


@pytest.mark.parametrize(("width", "depth"), [(66, 8), (33, 5)])
def test_em_fifo_ram(width, depth):
    simulate.cocotb("em_fifo_ram", __name__, {"Width": width, "Depth": depth})


async def start(dut):
    dut.valid_i.value, dut.ready_i.value, dut.clear_i.value, dut.data_i.value = 0, 0, 0, 5
    await bench.start(dut.clk_i, [dut.rst_ni])


@cocotb.test()
@cocotb.parametrize(shares=[(1.0, 1.0), (0.3, 1.0), (1.0, 0.3), (0.7, 0.6)])
async def words_pass_in_order(dut, shares):
    await start(dut)
    draws = bench.rng()
    words = [draws.getrandbits(len(dut.data_i)) for _ in range(WORDS)]
    clock = dut.clk_i
    cocotb.start_soon(
        bench.send(clock, dut.valid_i, dut.ready_o, dut.data_i, words, bench.rng(1), shares[0])
    )
    got = await bench.receive(
        clock, dut.valid_o, dut.ready_i, dut.data_o, WORDS, bench.rng(2), shares[1]
    )
    assert got == words
    assert int(dut.valid_o.value) == 0 and int(dut.count_o.value) == 0


@cocotb.test()
async def it_shows_a_word_in_every_cycle_once_it_has_some(dut):
    await start(dut)
    depth = int(dut.Depth.value)
    dut.valid_i.value = 1
    for count in range(depth + AHEAD + 3):
        await RisingEdge(dut.clk_i)
        assert int(dut.valid_o.value) == (count > 0)
        assert int(dut.ready_o.value) == (count < depth + AHEAD)
        await FallingEdge(dut.clk_i)
    dut.valid_i.value, dut.ready_i.value = 0, 1
    for _ in range(depth + AHEAD):
        await RisingEdge(dut.clk_i)
        assert int(dut.valid_o.value) == 1
        await FallingEdge(dut.clk_i)
    await RisingEdge(dut.clk_i)
    assert int(dut.valid_o.value) == 0


@cocotb.test()
async def it_forgets_what_it_has(dut):
    await start(dut)
    dut.valid_i.value = 1
    for _ in range(AHEAD + 3):
        await FallingEdge(dut.clk_i)
    dut.valid_i.value, dut.clear_i.value = 0, 1
    await FallingEdge(dut.clk_i)
    dut.clear_i.value = 0
    for _ in range(AHEAD):
        await FallingEdge(dut.clk_i)
        assert int(dut.valid_o.value) == 0 and int(dut.count_o.value) == 0
