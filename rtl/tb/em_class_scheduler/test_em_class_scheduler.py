"""em_class_scheduler decides what the Rust model decides by size classes, in the same cycles."""

import os

import pytest

from flow import schedule, tools

TOP = "em_class_scheduler"
POLICY = "srpt-classes"
# 10^5 in CI; the soak asks for 10^7.
CYCLES = int(os.environ.get("RTL_CYCLES", "100000"))
SEED = int(os.environ.get("RTL_SEED", "1"))


# As it is with so many ports, and as it is with more of them.
BY_ORDER = [(ports, 1) for ports in (2, 4, 8, 16)]
BY_CLASS = [(ports, 0) for ports in (4, 8)]


@pytest.mark.parametrize(("ports", "by_order"), BY_ORDER + BY_CLASS)
def test_golden_traces(ports, by_order):
    trace = tools.GOLDEN / "sched" / f"{POLICY}-pair-{ports:02}.csv"
    program = schedule.program(ports, TOP, ByOrder=by_order)
    said, code = schedule.replay_file(program, trace)
    assert code == 0, said


@pytest.mark.parametrize(("ports", "by_order"), BY_ORDER + BY_CLASS)
def test_random_notifications(ports, by_order):
    program = schedule.program(ports, TOP, ByOrder=by_order)
    said, code = schedule.replay_model(program, ports, POLICY, CYCLES, SEED)
    assert code == 0, said
    cycles, notified, refused, grants = (int(word) for word in said.split() if word.isdigit())
    assert cycles > CYCLES * 99 // 100 and grants > notified > cycles // 500 and refused > 0, said
