"""em_scheduler decides what the Rust model decides, in the same cycles."""

import os

import pytest

from flow import schedule, tools

POLICIES = ["fcfs", "srpt-published", "srpt"]
# 10^5 in CI, a quarter of it with 16 ports; the soak asks for 10^7.
CYCLES = int(os.environ.get("RTL_CYCLES", "100000"))
CYCLES_16 = int(os.environ.get("RTL_CYCLES", "25000"))
SEED = int(os.environ.get("RTL_SEED", "1"))


@pytest.mark.parametrize("ports", [2, 4, 8, 16])
@pytest.mark.parametrize("policy", POLICIES)
def test_golden_traces(ports, policy):
    trace = tools.GOLDEN / "sched" / f"{policy}-pair-{ports:02}.csv"
    said, code = schedule.replay_file(schedule.program(ports), trace)
    assert code == 0, said


@pytest.mark.parametrize("ports", [2, 4, 8, 16])
@pytest.mark.parametrize("policy", POLICIES)
def test_random_notifications(ports, policy):
    wanted = CYCLES_16 if ports == 16 else CYCLES
    said, code = schedule.replay_model(schedule.program(ports), ports, policy, wanted, SEED)
    assert code == 0, said
    cycles, notified, refused, grants = (int(word) for word in said.split() if word.isdigit())
    assert cycles > wanted * 99 // 100 and grants > notified > cycles // 500 and refused > 0, said
