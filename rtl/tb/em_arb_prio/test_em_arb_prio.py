"""em_arb_prio grants the lowest request and nobody else."""

import cocotb
import pytest
from cocotb.triggers import Timer

from flow import bench, simulate


@pytest.mark.parametrize("requests", [1, 7, 64])
def test_em_arb_prio(requests):
    simulate.cocotb("em_arb_prio", __name__, {"Requests": requests})


@cocotb.test()
async def the_lowest_request_is_granted(dut):
    width = int(dut.Requests.value)
    draws = bench.rng()
    dense = [draws.getrandbits(width) for _ in range(300)]
    sparse = [1 << draws.randrange(width) | 1 << draws.randrange(width) for _ in range(300)]
    for request in [0, *dense, *sparse]:
        dut.request_i.value = request
        await Timer(1, unit="ns")
        assert int(dut.grant_o.value) == request & -request
