"""What cocotb benches share: clocks, resets and streams with random gaps."""

import os
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge

# No bench that uses `start` is longer: what waits for ever fails here.
CYCLES_MAX = 200_000 + 10 * int(os.environ.get("RTL_CYCLES", "0"))


def rng(salt=0):
    """Random numbers that the seed of the run repeats."""
    return random.Random(cocotb.RANDOM_SEED * 1_000_003 + salt)


async def start(clock, resets, period_ns=2):
    """Starts a clock and holds the resets for two of its cycles."""
    for reset in resets:
        reset.value = 0
    Clock(clock, period_ns, unit="ns").start(start_high=False)
    cocotb.start_soon(_expire(clock))
    for _ in range(2):
        await FallingEdge(clock)
    for reset in resets:
        reset.value = 1


async def _expire(clock):
    """Fails a test that does not end."""
    await ClockCycles(clock, CYCLES_MAX)
    raise AssertionError(f"the test did not end within {CYCLES_MAX} cycles")


class Stable:
    """What a stream offers stays as it is until it is taken: the rule of AXI and AXI4-Stream."""

    def __init__(self, name):
        self.name, self.offered = name, None

    def pass_edge(self, valid, ready, word):
        """What is there in an edge of the clock."""
        if self.offered is not None:
            assert valid, f"{self.name} is taken back"
            assert word == self.offered, f"{self.name} changes before it is taken"
        self.offered = word if valid and not ready else None


async def send(clock, valid, ready, data, words, gaps, share):
    """Offers each word until it is taken; idles in a random share of the cycles."""
    for word in words:
        while gaps.random() >= share:
            valid.value = 0
            await FallingEdge(clock)
        valid.value, data.value = 1, word
        taken = False
        while not taken:
            await RisingEdge(clock)
            taken = bool(int(ready.value))
            await FallingEdge(clock)
    valid.value = 0


async def receive(clock, valid, ready, data, count, gaps, share):
    """Takes `count` words, ready in a random share of the cycles; gives them."""
    words = []
    while len(words) < count:
        ready.value = int(gaps.random() < share)
        await RisingEdge(clock)
        if int(valid.value) and int(ready.value):
            words.append(int(data.value))
        await FallingEdge(clock)
    ready.value = 0
    return words
