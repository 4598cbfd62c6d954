"""em_min_tree finds the least valid key, and the lowest index of equal ones."""

import cocotb
import pytest
from cocotb.triggers import Timer

from flow import bench, simulate


@pytest.mark.parametrize(("inputs", "key_width"), [(1, 4), (2, 3), (13, 4), (32, 51)])
def test_em_min_tree(inputs, key_width):
    parameters = {"Inputs": inputs, "KeyWidth": key_width}
    simulate.cocotb("em_min_tree", __name__, parameters)


@cocotb.test()
async def the_least_valid_key_is_found(dut):
    inputs, width = int(dut.Inputs.value), int(dut.KeyWidth.value)
    draws = bench.rng()
    for round_number in range(600):
        # Few different keys make equal ones; few valid ones make lone ones.
        narrow = draws.randrange(1, width + 1)
        keys = [draws.getrandbits(narrow) for _ in range(inputs)]
        valid = draws.getrandbits(inputs)
        if round_number % 3 == 0:
            valid &= draws.getrandbits(inputs) & draws.getrandbits(inputs)
        dut.valid_i.value = valid
        dut.key_i.value = keys
        await Timer(1, unit="ns")
        assert int(dut.valid_o.value) == (valid != 0)
        if valid:
            least = min((key, i) for i, key in enumerate(keys) if valid >> i & 1)
            assert (int(dut.key_o.value), int(dut.index_o.value)) == least
