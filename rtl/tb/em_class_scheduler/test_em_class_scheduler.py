"""em_class_scheduler decides what the Rust model decides by size classes, in the same cycles."""

import os

import pytest

from flow import schedule, tools

TOP = "em_class_scheduler"
POLICY = "srpt-classes"
# 10^5 in CI; the soak asks for 10^7.
CYCLES = int(os.environ.get("RTL_CYCLES", "100000"))
SEED = int(os.environ.get("RTL_SEED", "1"))


@pytest.mark.parametrize("ports", [2, 4, 8, 16])
def test_golden_traces(ports):
    trace = tools.GOLDEN / "sched" / f"{POLICY}-pair-{ports:02}.csv"
    said, code = schedule.replay_file(schedule.program(ports, TOP), trace)
    assert code == 0, said


@pytest.mark.parametrize("ports", [2, 4, 8, 16])
def test_random_notifications(ports):
    said, code = schedule.replay_model(schedule.program(ports, TOP), ports, POLICY, CYCLES, SEED)
    assert code == 0, said
    cycles, notified, refused, grants = (int(word) for word in said.split() if word.isdigit())
    assert cycles > CYCLES * 99 // 100 and grants > notified > cycles // 500 and refused > 0, said
