"""em_size_class_scheduler decides as the Rust model does by size classes, in the same cycles."""

import os

import pytest

from flow import schedule, tools

TOP = "em_size_class_scheduler"
POLICY = "srpt-classes"
# 10^5 in CI; the soak asks for 10^7.
CYCLES = int(os.environ.get("RTL_CYCLES", "100000"))
SEED = int(os.environ.get("RTL_SEED", "1"))


# To compile 16 ports takes two minutes: the soak does.
IN_SOAK = pytest.mark.skipif("RTL_CYCLES" not in os.environ, reason="16 ports; in make soak")
# Both ways to choose, and with each number of ports the one that it has by itself.
CASES = [(2, 1), (4, 1), (8, 1), (4, 0), (8, 0), pytest.param(16, 0, marks=IN_SOAK)]


@pytest.mark.parametrize(("ports", "by_order"), CASES)
def test_golden_traces(ports, by_order):
    trace = tools.GOLDEN / "sched" / f"{POLICY}-pair-{ports:02}.csv"
    program = schedule.program(ports, TOP, ByOrder=by_order)
    said, code = schedule.replay_file(program, trace)
    assert code == 0, said


@pytest.mark.parametrize(("ports", "by_order"), CASES)
def test_random_notifications(ports, by_order):
    program = schedule.program(ports, TOP, ByOrder=by_order)
    said, code = schedule.replay_model(program, ports, POLICY, CYCLES, SEED)
    assert code == 0, said
    cycles, notified, refused, grants = (int(word) for word in said.split() if word.isdigit())
    assert cycles > CYCLES * 99 // 100 and grants > notified > cycles // 500 and refused > 0, said
