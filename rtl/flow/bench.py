"""What cocotb benches share: clocks, resets and streams with random gaps."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge


def rng(salt=0):
    """Random numbers that the seed of the run repeats."""
    return random.Random(cocotb.RANDOM_SEED * 1_000_003 + salt)


async def start(clock, resets, period_ns=2):
    """Starts a clock and holds the resets for two of its cycles."""
    for reset in resets:
        reset.value = 0
    Clock(clock, period_ns, unit="ns").start(start_high=False)
    for _ in range(2):
        await FallingEdge(clock)
    for reset in resets:
        reset.value = 1


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
