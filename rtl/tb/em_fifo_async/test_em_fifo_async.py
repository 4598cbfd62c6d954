"""em_fifo_async: every word once and in order between any two clocks; four cycles at equal ones."""

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge, Timer

from flow import bench, simulate

WORDS = 300
CROSSING_CYCLES = 4


@pytest.mark.parametrize(("width", "depth", "register"), [(66, 8, 1), (12, 4, 1), (20, 8, 0)])
def test_em_fifo_async(width, depth, register):
    parameters = {"Width": width, "Depth": depth, "OutputRegister": register}
    simulate.cocotb("em_fifo_async", __name__, parameters)


async def start(dut, write_ps, read_ps, phase_ps):
    """Two clocks of any period and phase, out of reset."""
    dut.write_rst_ni.value = dut.read_rst_ni.value = 0
    dut.write_valid_i.value = dut.read_ready_i.value = 0
    Clock(dut.write_clk_i, write_ps, unit="ps").start(start_high=False)
    await Timer(phase_ps, unit="ps")
    Clock(dut.read_clk_i, read_ps, unit="ps").start(start_high=False)
    for _ in range(3):
        await FallingEdge(dut.write_clk_i)
        await FallingEdge(dut.read_clk_i)
    dut.write_rst_ni.value = dut.read_rst_ni.value = 1


# 100 ppm apart, far apart either way, and a phase that slips through every position.
@cocotb.test()
@cocotb.parametrize(
    periods=[(2560, 2560), (20000, 20002), (2560, 7110), (9172, 2560)],
    shares=[(1.0, 1.0), (0.5, 0.6)],
)
async def words_pass_in_order(dut, periods, shares):
    await start(dut, *periods, 342)
    draws = bench.rng()
    words = [draws.getrandbits(len(dut.write_data_i)) for _ in range(WORDS)]
    cocotb.start_soon(
        bench.send(
            dut.write_clk_i,
            dut.write_valid_i,
            dut.write_ready_o,
            dut.write_data_i,
            words,
            bench.rng(1),
            shares[0],
        )
    )
    got = await bench.receive(
        dut.read_clk_i,
        dut.read_valid_o,
        dut.read_ready_i,
        dut.read_data_o,
        WORDS,
        bench.rng(2),
        shares[1],
    )
    assert got == words
    for _ in range(8):
        await FallingEdge(dut.read_clk_i)
    assert int(dut.read_valid_o.value) == 0


@cocotb.test()
async def a_word_takes_four_cycles_at_equal_clocks(dut):
    await start(dut, 2000, 2000, 1)
    await FallingEdge(dut.write_clk_i)
    dut.write_valid_i.value, dut.write_data_i.value = 1, 7
    dut.read_ready_i.value = 1
    await FallingEdge(dut.write_clk_i)
    dut.write_valid_i.value = 0
    cycles = 1
    while not int(dut.read_valid_o.value):
        await FallingEdge(dut.read_clk_i)
        cycles += 1
    assert int(dut.read_data_o.value) == 7
    assert cycles == CROSSING_CYCLES - 1 + int(dut.OutputRegister.value)


@cocotb.test()
async def it_keeps_full_rate_and_fills_to_its_depth(dut):
    await start(dut, 2000, 2000, 1)
    depth = int(dut.Depth.value)
    await FallingEdge(dut.write_clk_i)
    dut.write_valid_i.value, dut.write_data_i.value = 1, 1
    taken = 0
    for _ in range(4 * depth):
        await RisingEdge(dut.write_clk_i)
        taken += int(dut.write_ready_o.value)
        await FallingEdge(dut.write_clk_i)
    # One more than Depth waits in the output register.
    assert taken == depth + int(dut.OutputRegister.value)
    if depth >= 8:
        dut.read_ready_i.value = 1
        for _ in range(2 * depth):
            await FallingEdge(dut.read_clk_i)
        for _ in range(4 * depth):
            await RisingEdge(dut.read_clk_i)
            assert int(dut.read_valid_o.value) == 1
