"""em_axi_read gives exactly the bytes of its jobs, in bursts that AXI4 allows."""

from collections import deque

import cocotb
import pytest
from cocotb.triggers import FallingEdge, RisingEdge
from host_world import Memory

from flow import bench, simulate, structs

SIZE = 1 << 14
JOBS = 150
# What a message may have at most.
BYTES_MOST = 65528


@pytest.mark.parametrize("burst", [2048, 64])
def test_em_axi_read(burst):
    simulate.cocotb("em_axi_read", __name__, {"BurstBytes": burst})


@cocotb.test()
@cocotb.parametrize(share=[1.0, 0.6])
async def the_bytes_of_each_job_come_in_order(dut, share):
    draws = bench.rng()
    memory = Memory(SIZE, bench.rng(1), share=share, delay_max=10, bad=range(4096, 5120))
    jobs, expected = deque(), []
    for i in range(JOBS):
        length = draws.choice([1, 7, 8, 9, 64, 65, 256, 1000, draws.randint(1, 1024)])
        address = draws.randrange(SIZE - length)
        if draws.random() < 0.4:
            address = min(SIZE - length, max(0, 2048 * draws.randrange(8) - length // 2))
        refused = int(draws.random() < 0.1)
        jobs.append((address, length, i & 0xFF, refused))
        failed = any(memory.response(at // 8 * 8) for at in range(address, address + length))
        content = bytes(memory.data[address : address + length])
        expected.append((i & 0xFF, int(bool(refused or failed)), b"" if refused else content))
    await reads(dut, memory, jobs, expected, draws, share)


@cocotb.test()
async def the_longest_jobs_come_from_any_address(dut):
    draws = bench.rng()
    memory = Memory(2 * (BYTES_MOST + 8), bench.rng(1), share=1.0)
    jobs, expected = deque(), []
    for lane in range(8):
        address, length = 4096 * draws.randrange(8) + lane, BYTES_MOST - draws.randrange(2) * lane
        jobs.append((address, length, lane, 0))
        expected.append((lane, 0, bytes(memory.data[address : address + length])))
    await reads(dut, memory, jobs, expected, draws, 1.0)


async def reads(dut, memory, jobs, expected, draws, share):
    """Runs jobs until all have ended, and compares what they gave."""
    for name in ("job_valid_i", "job_refused_i", "word_ready_i"):
        getattr(dut, name).value = 0
    axi = structs.Driver(dut.m_axi_i, structs.AXI_READ_RESPONSE)
    await bench.start(dut.clk_i, [dut.rst_ni])
    found, words = [], []
    while len(found) < len(expected):
        ready = memory.drive()
        beat = memory.offers[1]
        offer = int(bool(jobs) and draws.random() < share)
        if offer:
            dut.job_address_i.value, dut.job_bytes_i.value = jobs[0][:2]
            dut.job_tag_i.value, dut.job_refused_i.value = jobs[0][2:]
        dut.job_valid_i.value = offer
        take = int(draws.random() < share)
        dut.word_ready_i.value = take
        data, response = beat[1:] if beat else (0, 0)
        axi.set(ar_ready=ready[2], r_valid=beat is not None, r_data=data, r_resp=response)
        await RisingEdge(dut.clk_i)
        asked = structs.AXI_READ_REQUEST.unpack(dut.m_axi_o.value)
        if offer and int(dut.job_ready_o.value):
            jobs.popleft()
        if beat and asked.r_ready:
            memory.reads.popleft()
        if asked.ar_valid and ready[2]:
            memory.read(asked.ar_addr, asked.ar_len + 1)
        if int(dut.word_valid_o.value) and take:
            assert int(dut.word_number_o.value) == len(words)
            words.append(int(dut.word_o.value).to_bytes(8, "little"))
            if int(dut.word_last_o.value):
                tag, error = int(dut.word_tag_o.value), int(dut.word_error_o.value)
                found.append((tag, error, b"".join(words)))
                words = []
        await FallingEdge(dut.clk_i)
    for got, wanted in zip(found, expected, strict=True):
        assert got[:2] == wanted[:2]
        assert got[2][: len(wanted[2])] == wanted[2]
        assert len(got[2]) == max(8, (len(wanted[2]) + 7) // 8 * 8)
    for _ in range(4):
        await FallingEdge(dut.clk_i)
    assert int(dut.quiet_o.value) == 1
