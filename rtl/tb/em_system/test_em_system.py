"""The whole: nodes and a switch, every byte, order and frame, and links that corrupt."""

import os

import pytest

from flow import system

MESSAGES = int(os.environ.get("RTL_CYCLES", "100000")) // 100
FIRST_SEED = int(os.environ.get("RTL_SEED", "1"))
# Of RTL_CYCLES in `make soak`, 10^7: 10^5 messages.
ERRORS = MESSAGES // 50


def unharmed(nodes, messages, seed, **model):
    """What was counted of a run in which software sees that nothing went wrong."""
    found = system.run(nodes, "check", messages, seed, 0, **model)
    print(found)
    assert found["messages"] == found["completed"] >= messages
    # Each link started once.
    assert found["started"] == 2 * nodes
    wrong = "failed errors corrupt remote_failed memory_dry dropped_by_hosts dropped_by_switch"
    assert not any(found[name] for name in wrong.split())
    assert found["sent"] == found["received"] > 0
    assert found["reached"] == nodes * (nodes - 1)
    return found


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + 3))
def test_every_byte_and_frame_comes_in_its_order(seed):
    found = unharmed(system.TRIPLE, MESSAGES // 3 + 1, seed)
    assert found["frames"] > MESSAGES // 20


# The second finds lines busy with Ethernet when memory has something to send.
@pytest.mark.parametrize("seed", [FIRST_SEED, FIRST_SEED + 1])
def test_every_byte_of_two_nodes_comes(seed):
    unharmed(system.PAIR, 300, seed)


@pytest.mark.parametrize("seed", range(FIRST_SEED + 10, FIRST_SEED + 14))
def test_bit_errors_end_in_failed_links_and_never_in_wrong_data(seed):
    found = system.run(system.TRIPLE, "check", MESSAGES, seed, ERRORS)
    print(found)
    assert found["corrupt"] > 0 and found["failed"] > 0 and found["injected"] > 0
    # Whatever failed was told to its caller, and is counted.
    assert found["completed"] + found["errors"] == found["messages"]
    assert found["failed"] == found["errors"]
    assert found["started"] > 2 * system.TRIPLE
    # Links start anew, and with them every pair.
    assert found["reached"] == system.TRIPLE * (system.TRIPLE - 1)


def test_a_read_takes_the_cycles_of_the_budget_and_one_less():
    found = system.run(system.PAIR, "stages", "read", 64)
    stages = {"generate_request": 2, "switch_release": 7, "receive_request": 3}
    stages |= {"switch_forward": 4, "receive_response": 3}
    stages |= {f"pcs_{line}": 4 for line in range(1, 5)}
    assert {name: found[name] for name in stages} == stages
    # Grant queue 4 and generate 3: the first of the three passes while memory works.
    assert found["generate_response"] == 6
    assert found["cycles"] == 41 and found["blocks"] <= 10
    assert found["request_blocks_1"] == 1, "a request has two blocks"


def test_a_write_takes_the_cycles_of_the_budget():
    found = system.run(system.PAIR, "stages", "write", 64)
    stages = {"generate_notification": 2, "switch_grant": 7, "receive_grant": 2}
    stages |= {"grant_queue": 4, "generate_write": 3, "switch_forward": 4, "receive_write": 3}
    stages |= {f"pcs_{line}": 4 for line in range(1, 5)}
    assert {name: found[name] for name in stages} == stages
    assert found["cycles"] == 41 and found["blocks"] <= 10


@pytest.mark.skipif(MESSAGES <= 1000, reason="a model of its own; in make soak")
def test_with_few_stages_every_end_of_a_line_is_a_cycle_less():
    few = ("-GFewStages=1",)
    for operation in ("read", "write"):
        found = system.run(system.PAIR, "stages", operation, 64, flags=few)
        assert found["cycles"] == 33 and found["pcs_1"] == 2, found
    unharmed(system.PAIR, 300, FIRST_SEED, flags=few)


def test_an_application_reads_what_it_wrote():
    lines = [f"{kind} 100 {64 * i}" for i in range(50) for kind in ("write", "read")]
    found = system.run(system.PAIR, "ycsb", 4, 32, stdin="\n".join(lines))
    assert (found["reads"], found["writes"], found["operations"]) == (50, 50, 100)
    # More than the lines, the logic and the DRAM take.
    assert found["read_cycles_min"] > 75 + 40 + 32


def test_an_operation_beyond_memory_is_refused():
    with pytest.raises(AssertionError, match="1 to 1024 bytes within the memory"):
        system.run(system.PAIR, "ycsb", 1, 32, stdin=f"read 8 {1 << 20}")
