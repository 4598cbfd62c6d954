"""em_host_grants gives every entry once and in order, whatever waits, and takes four cycles."""

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge
from host_world import clock_of

from flow import bench, simulate

CROSSING_CYCLES = 4
WORDS = 400


@pytest.mark.parametrize("depth", [3, 64])
def test_em_host_grants(depth):
    simulate.cocotb("em_host_grants", __name__, {"Depth": depth})


async def start(dut, rx_ps, tx_ps):
    """Two clocks; if alike, the edges of the transmitter just miss those of the receiver."""
    dut.valid_i.value = dut.ready_i.value = dut.item_i.value = 0
    dut.rx_rst_ni.value = dut.tx_rst_ni.value = 0
    cocotb.start_soon(clock_of(dut.tx_clk_i, tx_ps, 0))
    cocotb.start_soon(clock_of(dut.rx_clk_i, rx_ps, 2))
    for _ in range(4):
        await FallingEdge(dut.rx_clk_i)
        await FallingEdge(dut.tx_clk_i)
    dut.rx_rst_ni.value = dut.tx_rst_ni.value = 1
    await FallingEdge(dut.rx_clk_i)


@cocotb.test()
@cocotb.parametrize(
    clocks=[(2560, 2560), (2560, 2566), (2560, 7110), (9172, 2560)],
    shares=[(1.0, 1.0), (0.9, 0.3), (0.3, 0.9)],
)
async def every_entry_comes_once_and_in_order(dut, clocks, shares):
    await start(dut, *clocks)
    draws = bench.rng()
    words = [draws.getrandbits(len(dut.item_i)) for _ in range(WORDS)]
    sent = bench.send(
        dut.rx_clk_i, dut.valid_i, dut.ready_o, dut.item_i, words, bench.rng(1), shares[0]
    )
    cocotb.start_soon(sent)
    found = await bench.receive(
        dut.tx_clk_i, dut.valid_o, dut.ready_i, dut.item_o, WORDS, bench.rng(2), shares[1]
    )
    assert found == words


@cocotb.test()
async def it_takes_four_cycles(dut):
    await start(dut, 2560, 2560)
    dut.valid_i.value, dut.item_i.value, dut.ready_i.value = 1, 5, 1
    await RisingEdge(dut.rx_clk_i)
    await FallingEdge(dut.rx_clk_i)
    dut.valid_i.value = 0
    cycles = 0
    while not int(dut.valid_o.value):
        await RisingEdge(dut.tx_clk_i)
        cycles += 1
        await FallingEdge(dut.tx_clk_i)
    # The edge that wrote it was the first.
    assert cycles + 1 == CROSSING_CYCLES
    assert int(dut.item_o.value) == 5


@cocotb.test()
async def it_holds_its_depth_and_what_crosses(dut):
    await start(dut, 2560, 2560)
    dut.valid_i.value, dut.item_i.value = 1, 1
    taken = 0
    for _ in range(120):
        await RisingEdge(dut.rx_clk_i)
        taken += int(dut.ready_o.value)
        await FallingEdge(dut.rx_clk_i)
    # Eight that cross and one at the output.
    assert taken == int(dut.Depth.value) + 9
