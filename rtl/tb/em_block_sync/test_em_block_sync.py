"""em_block_sync finds where blocks begin, keeps to it, and tells a line with many errors."""

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge

from flow import bench, simulate

BLOCK_BITS = 66
SLIP_BLOCKS, BER_HEADERS, BER_BLOCKS = 4, 20, 500
LOCK_BLOCKS, WRONG_MAX = 64, 16


def test_em_block_sync():
    parameters = {"SlipBlocks": SLIP_BLOCKS, "BerHeaders": BER_HEADERS, "BerBlocks": BER_BLOCKS}
    simulate.cocotb("em_block_sync", __name__, parameters)


async def start(dut):
    dut.valid_i.value = dut.header_i.value = 0
    await bench.start(dut.clk_i, [dut.rst_ni])


async def hear(dut, wrong, draws):
    """A block with a right or wrong header; gives whether it made the gearbox slip."""
    while draws.random() < 0.2:
        dut.valid_i.value, dut.header_i.value = 0, draws.getrandbits(2)
        await FallingEdge(dut.clk_i)
    dut.valid_i.value, dut.header_i.value = 1, draws.choice([0, 3] if wrong else [1, 2])
    await RisingEdge(dut.clk_i)
    slip = int(dut.slip_o.value)
    await FallingEdge(dut.clk_i)
    dut.valid_i.value = 0
    return slip


async def locked(dut, draws):
    """A line that is right from now on: as many blocks as it takes to lock."""
    for count in range(SLIP_BLOCKS + LOCK_BLOCKS + 1):
        if int(dut.lock_o.value):
            return count
        assert not await hear(dut, False, draws)
    raise AssertionError("no lock")


@cocotb.test()
async def the_lock_is_found_from_every_bit_of_a_block(dut):
    draws = bench.rng()
    for offset in range(0, BLOCK_BITS, 7):
        await start(dut)
        # Random payloads: at a wrong place, two bits are a header as often as not.
        at, slipping = offset, 0
        while not int(dut.lock_o.value):
            wrong = at % BLOCK_BITS != 0 and draws.random() < 0.5
            slip = await hear(dut, wrong, draws)
            assert slip == (wrong and slipping == 0), "at once, but not while it slips"
            at += slip
            slipping = SLIP_BLOCKS if slip else max(slipping - 1, 0)
        assert at % BLOCK_BITS == 0, f"locked {at % BLOCK_BITS} bits off"


@cocotb.test()
async def the_lock_takes_64_sound_headers_and_is_lost_by_16_wrong_ones_of_64(dut):
    draws = bench.rng()
    await start(dut)
    assert await locked(dut, draws) == LOCK_BLOCKS
    for _ in range(20):
        order = [True] * (WRONG_MAX - 1) + [False] * (LOCK_BLOCKS - WRONG_MAX + 1)
        draws.shuffle(order)
        for wrong in order:
            assert not await hear(dut, wrong, draws)
        assert int(dut.lock_o.value)
    for _ in range(WRONG_MAX - 1):
        assert not await hear(dut, True, draws)
    assert await hear(dut, True, draws) and not int(dut.lock_o.value)
    # What comes while the gearbox slips does not count.
    for _ in range(SLIP_BLOCKS):
        assert not await hear(dut, True, draws)
    assert await locked(dut, draws) == LOCK_BLOCKS


@cocotb.test()
async def a_window_with_many_wrong_headers_is_told_until_one_without(dut):
    draws = bench.rng()
    await start(dut)
    await locked(dut, draws)
    for wrongs, high in [(BER_HEADERS - 1, 0), (BER_HEADERS, 1), (BER_HEADERS - 1, 0), (40, 1)]:
        for block in range(BER_BLOCKS):
            # Far enough apart that the lock stays.
            wrong = block % 10 == 5 and block // 10 < wrongs
            assert not await hear(dut, wrong, draws)
            if block // 10 >= BER_HEADERS and high:
                assert int(dut.hi_ber_o.value), "known at once"
        assert int(dut.hi_ber_o.value) == high and int(dut.lock_o.value)
