"""em_host_ram reads what was written, in the edge that writes it, too, and holds what it read."""

import cocotb
import pytest
from cocotb.triggers import FallingEdge

from flow import bench, simulate


@pytest.mark.parametrize("depth", [1, 5])
def test_em_host_ram(depth):
    simulate.cocotb("em_host_ram", __name__, {"Width": 9, "Depth": depth})


@cocotb.test()
async def it_is_a_memory(dut):
    draws = bench.rng()
    depth = int(dut.Depth.value)
    words, read = [None] * depth, None
    dut.write_i.value = dut.read_i.value = 0
    await bench.start(dut.clk_i, [])
    for _ in range(2000):
        await FallingEdge(dut.clk_i)
        if read is not None:
            assert int(dut.read_data_o.value) == read
        writes, reads = draws.random() < 0.5, draws.random() < 0.5
        to, word, at = draws.randrange(depth), draws.getrandbits(9), draws.randrange(depth)
        dut.write_i.value, dut.read_i.value = int(writes), int(reads)
        dut.write_address_i.value, dut.write_data_i.value = to, word
        dut.read_address_i.value = at
        if writes:
            words[to] = word
        if reads:
            read = words[at]
