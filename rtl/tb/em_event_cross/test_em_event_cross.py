"""em_event_cross: no pulse is lost or counted twice between two clocks."""

import os

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge

from flow import bench, simulate

EVENTS = 3
PULSES = 2000


@pytest.mark.parametrize("period_ps", [1000, 990, 2700, 330])
def test_em_event_cross(period_ps):
    simulate.cocotb(
        "em_event_cross", __name__, {"Events": EVENTS}, environment={"PERIOD_PS": period_ps}
    )


async def count(dut, totals):
    """Adds up what comes."""
    bits = len(dut.count_o) // EVENTS
    while True:
        await RisingEdge(dut.clk_i)
        word = int(dut.count_o.value)
        for event in range(EVENTS):
            totals[event] += word >> bits * event & (1 << bits) - 1


@cocotb.test()
async def each_pulse_counts_once(dut):
    draws, totals, sent = bench.rng(), [0] * EVENTS, [0] * EVENTS
    dut.event_i.value = 0
    dut.event_rst_ni.value = dut.rst_ni.value = 0
    Clock(dut.event_clk_i, 1000, unit="ps").start(start_high=False)
    Clock(dut.clk_i, int(os.environ["PERIOD_PS"]), unit="ps").start(start_high=False)
    for _ in range(8):
        await FallingEdge(dut.event_clk_i)
    dut.event_rst_ni.value = dut.rst_ni.value = 1
    cocotb.start_soon(count(dut, totals))
    for cycle in range(PULSES):
        # Also in every cycle for a while.
        share = 1.0 if cycle // 100 % 3 == 0 else 0.2
        pulses = sum((draws.random() < share) << event for event in range(EVENTS))
        for event in range(EVENTS):
            sent[event] += pulses >> event & 1
        dut.event_i.value = pulses
        await FallingEdge(dut.event_clk_i)
    dut.event_i.value = 0
    for _ in range(30):
        await FallingEdge(dut.event_clk_i)
    assert totals == sent
