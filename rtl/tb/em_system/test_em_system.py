"""The whole: nodes and a switch, every byte, order and frame, and links that corrupt."""

import os

import pytest

from flow import system

MESSAGES = int(os.environ.get("RTL_CYCLES", "100000")) // 100
FIRST_SEED = int(os.environ.get("RTL_SEED", "1"))
# Of RTL_CYCLES in `make soak`, 10^7: 10^5 messages.
ERRORS = MESSAGES // 50


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + 3))
def test_every_byte_and_frame_comes_in_its_order(seed):
    found = system.run(system.TRIPLE, "check", MESSAGES // 3 + 1, seed, 0)
    print(found)
    assert found["messages"] == found["completed"] > MESSAGES // 3
    assert found["frames"] > MESSAGES // 20
    # Software sees that nothing went wrong: each link started once.
    assert found["started"] == 2 * system.TRIPLE
    wrong = "failed errors corrupt remote_failed memory_dry dropped_by_hosts dropped_by_switch"
    assert not any(found[name] for name in wrong.split())
    assert found["sent"] == found["received"]


@pytest.mark.parametrize("seed", range(FIRST_SEED + 10, FIRST_SEED + 14))
def test_bit_errors_end_in_failed_links_and_never_in_wrong_data(seed):
    found = system.run(system.TRIPLE, "check", MESSAGES, seed, ERRORS)
    print(found)
    assert found["corrupt"] > 0 and found["failed"] > 0 and found["injected"] > 0
    # Whatever failed was told to its caller, and is counted.
    assert found["completed"] + found["errors"] == found["messages"]
    assert found["failed"] == found["errors"]
    assert found["started"] > 2 * system.TRIPLE
