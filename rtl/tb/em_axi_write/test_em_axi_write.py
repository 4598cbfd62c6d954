"""em_axi_write leaves exactly the bytes of its jobs in memory, in bursts that AXI4 allows."""

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
def test_em_axi_write(burst):
    simulate.cocotb("em_axi_write", __name__, {"BurstBytes": burst})


def random_jobs(draws, memory, mirror, burst_bytes):
    """Jobs with their data, how each ends, and memory as they leave it."""
    jobs, words, expected = deque(), deque(), []
    for i in range(JOBS):
        length = draws.choice([1, 7, 8, 9, 64, 65, 256, 1000, draws.randint(1, 1024)])
        address = draws.randrange(SIZE - length)
        if draws.random() < 0.4:
            address = min(SIZE - length, max(0, 2048 * draws.randrange(8) - length // 2))
        refused = int(draws.random() < 0.1)
        content = draws.randbytes(length)
        jobs.append((address, length, i & 0xFF, refused))
        padded = content + draws.randbytes(-length % 8)
        words.extend(int.from_bytes(padded[j : j + 8], "little") for j in range(0, length, 8))
        failed = any(memory.response(at // 8 * 8) for at in range(address, address + length))
        expected.append((i & 0xFF, int(bool(refused or failed))))
        if not refused:
            apply(mirror, memory, burst_bytes, address, content)
    return jobs, words, expected


@cocotb.test()
@cocotb.parametrize(share=[1.0, 0.6])
async def the_bytes_of_each_job_are_in_memory(dut, share):
    draws = bench.rng()
    memory = Memory(SIZE, bench.rng(1), share=share, delay_max=10, bad=range(4096, 5120))
    mirror = bytearray(memory.data)
    jobs, words, expected = random_jobs(draws, memory, mirror, int(dut.BurstBytes.value))
    await writes(dut, memory, jobs, words, expected, draws, share)
    assert memory.data == mirror


@cocotb.test()
async def the_longest_jobs_are_written_to_any_address(dut):
    draws = bench.rng()
    memory = Memory(2 * (BYTES_MOST + 8), bench.rng(1), share=1.0)
    mirror = bytearray(memory.data)
    jobs, words, expected = deque(), deque(), []
    for lane in range(8):
        address, length = 4096 * draws.randrange(8) + lane, BYTES_MOST - draws.randrange(2) * lane
        content = draws.randbytes(length)
        jobs.append((address, length, lane, 0))
        padded = content + bytes(-length % 8)
        words.extend(int.from_bytes(padded[j : j + 8], "little") for j in range(0, length, 8))
        expected.append((lane, 0))
        mirror[address : address + length] = content
    await writes(dut, memory, jobs, words, expected, draws, 1.0)
    assert memory.data == mirror


async def writes(dut, memory, jobs, words, expected, draws, share):
    """Runs jobs until all have ended, and compares how they did."""
    done = []
    for name in ("job_valid_i", "job_refused_i", "done_ready_i"):
        getattr(dut, name).value = 0
    axi = structs.Driver(dut.m_axi_i, structs.AXI_WRITE_RESPONSE)
    await bench.start(dut.clk_i, [dut.rst_ni])
    while len(done) < len(expected):
        ready = memory.drive()
        answer = memory.offers[0]
        offer, take = int(bool(jobs) and draws.random() < share), int(draws.random() < share)
        if offer:
            dut.job_address_i.value, dut.job_bytes_i.value = jobs[0][:2]
            dut.job_tag_i.value, dut.job_refused_i.value = jobs[0][2:]
        dut.job_valid_i.value, dut.done_ready_i.value = offer, take
        axi.set(aw_ready=ready[0], w_ready=ready[1], b_valid=answer is not None)
        axi.set(b_resp=memory.response(answer[1]) if answer else 0)
        await RisingEdge(dut.clk_i)
        if offer and int(dut.job_ready_o.value):
            jobs.popleft()
        accesses(dut, memory, ready, answer)
        if int(dut.done_valid_o.value) and take:
            done.append((int(dut.done_tag_o.value), int(dut.done_error_o.value)))
        popped = int(dut.pop_o.value)
        await FallingEdge(dut.clk_i)
        if popped:
            dut.data_i.value = words.popleft()
        memory.settle()
    assert done == expected
    for _ in range(4):
        await FallingEdge(dut.clk_i)
    assert int(dut.quiet_o.value) == 1
    assert not words


def accesses(dut, memory, ready, answer):
    """What memory took in this cycle."""
    asked = structs.AXI_WRITE_REQUEST.unpack(dut.m_axi_o.value)
    if asked.aw_valid and ready[0]:
        memory.write(asked.aw_addr, asked.aw_len + 1)
    if asked.w_valid and ready[1]:
        memory.beat(asked.w_data, asked.w_strb, asked.w_last)
    if answer and asked.b_ready:
        memory.apply()


def apply(mirror, memory, burst_bytes, address, content):
    """A burst that fails does not act."""
    end = address + len(content)
    while address < end:
        boundary = min(end, (address // burst_bytes + 1) * burst_bytes)
        if memory.response(address // 8 * 8) == 0:
            mirror[address:boundary] = content[: boundary - address]
        content = content[boundary - address :]
        address = boundary
