"""em_arb_rr grants in turn: the next request above the last one taken."""

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge

from flow import bench, simulate


@pytest.mark.parametrize("requests", [2, 7, 16])
def test_em_arb_rr(requests):
    simulate.cocotb("em_arb_rr", __name__, {"Requests": requests})


@cocotb.test()
async def requests_are_granted_in_turn(dut):
    width = int(dut.Requests.value)
    draws = bench.rng()
    dut.request_i.value = dut.taken_i.value = 0
    await bench.start(dut.clk_i, [dut.rst_ni])
    last = width - 1
    for _ in range(1000):
        request = draws.getrandbits(width) & draws.getrandbits(width)
        taken = draws.random() < 0.7
        dut.request_i.value, dut.taken_i.value = request, taken
        await RisingEdge(dut.clk_i)
        turns = [(last + 1 + step) % width for step in range(width)]
        granted = next((turn for turn in turns if request >> turn & 1), None)
        assert int(dut.grant_o.value) == (0 if granted is None else 1 << granted)
        if taken and granted is not None:
            last = granted
        await FallingEdge(dut.clk_i)
