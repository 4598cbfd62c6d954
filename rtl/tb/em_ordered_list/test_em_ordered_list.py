"""em_ordered_list against a sorted list: the least eligible element, equal keys by arrival."""

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge

from flow import bench, simulate

CYCLES = 2500


@pytest.mark.parametrize(("depth", "key_width", "groups"), [(2, 2, 1), (12, 3, 4), (48, 16, 16)])
def test_em_ordered_list(depth, key_width, groups):
    parameters = {"Depth": depth, "KeyWidth": key_width, "IdWidth": 8, "Groups": groups}
    simulate.cocotb("em_ordered_list", __name__, parameters)


class Draws:
    """Random inputs of a cycle, valid for a list that holds `elements`."""

    def __init__(self, dut):
        self.draws = bench.rng()
        self.key_bits, self.groups = int(dut.KeyWidth.value), int(dut.Groups.value)
        # Fills, drains and hovers in turn.
        self.share = 0.5

    def insertion(self, cycle, elements):
        if cycle % 100 == 0:
            self.share = self.draws.choice([0.2, 0.5, 0.9])
        used = {element[1] for element in elements}
        name = self.draws.choice([name for name in range(256) if name not in used])
        key = self.draws.getrandbits(self.draws.randrange(1, self.key_bits + 1))
        offered = self.draws.random() < self.share
        return offered, (key, name, self.draws.randrange(self.groups))

    def removal(self, elements):
        if self.draws.random() < 0.5:
            return False, 0
        if elements and self.draws.random() < 0.9:
            return True, self.draws.choice(elements)[1]
        return True, self.draws.randrange(256)


@cocotb.test()
async def it_shows_the_least_eligible_element(dut):
    dut.insert_valid_i.value = dut.remove_i.value = 0
    await bench.start(dut.clk_i, [dut.rst_ni])
    draws, elements, seen = Draws(dut), [], dict.fromkeys(["full", "missed", "passed", "both"], 0)
    for cycle in range(CYCLES):
        offered, inserted = draws.insertion(cycle, elements)
        remove, name = draws.removal(elements)
        eligible = draws.draws.getrandbits(draws.groups)
        dut.insert_valid_i.value = offered
        dut.insert_key_i.value, dut.insert_id_i.value, dut.insert_group_i.value = inserted
        dut.remove_i.value, dut.remove_id_i.value = remove, name
        dut.eligible_i.value = eligible
        await RisingEdge(dut.clk_i)
        ready = len(elements) < int(dut.Depth.value)
        assert int(dut.insert_ready_o.value) == ready
        found = next((element for element in elements if eligible >> element[2] & 1), None)
        assert int(dut.least_valid_o.value) == (found is not None)
        if found is not None:
            shown = (dut.least_key_o, dut.least_id_o, dut.least_group_o)
            assert tuple(int(signal.value) for signal in shown) == found
            seen["passed"] += found != elements[0]
        left = [element for element in elements if not (remove and element[1] == name)]
        missed = remove and len(left) == len(elements)
        assert int(dut.remove_missed_o.value) == missed
        seen["missed"] += missed
        seen["full"] += offered and not ready
        seen["both"] += offered and ready and remove and not missed
        # A stable sort: what is equal stays in order of arrival.
        elements = left + [inserted] * (offered and ready)
        elements.sort(key=lambda element: element[0])
        await FallingEdge(dut.clk_i)
    if draws.groups == 1:
        del seen["passed"]
    assert min(seen.values()) > 20, seen
