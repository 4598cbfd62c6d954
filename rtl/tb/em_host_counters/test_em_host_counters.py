"""em_host_counters: each end of a request and each drop counts once, in its own register."""

import itertools

import cocotb
from cocotb.triggers import FallingEdge

from flow import bench, registerbus, simulate

IDENTITY, BUILD, NODE, MEMORY = 0x00, 0x08, 0x10, 0x18
COMPLETED = 0x40
ENDED = ["timeouts", "incomplete", "peer_down", "link_down", "bad_requests", "remote_errors"]
DROPPED = ["duplicates", "writes_dropped", "posted_lost", "grants_lost", "replies_lost"]
# As they follow each other in the register file.
COUNTERS = ["completed", *ENDED, *DROPPED]
NODES, X, MESSAGE_BYTES, CHUNK_BYTES = 7, 5, 512, 128
PARAMETERS = {
    "Nodes": NODES,
    "X": X,
    "MessageBytes": MESSAGE_BYTES,
    "ChunkBytes": CHUNK_BYTES,
}
# em_host_pkg's end_e and em_pkg's status_e: the first of each is that it was done.
ENDS, STATUSES = 6, 8
MAGIC = int.from_bytes(b"EMHO", "little")


def test_em_host_counters():
    simulate.cocotb("em_host_counters", __name__, PARAMETERS)


async def begin(dut):
    dut.bus_i.value = dut.completed_i.value = dut.completion_i.value = dut.dropped_i.value = 0
    await bench.start(dut.clk_i, [dut.rst_ni])


async def counted(dut):
    """What is not zero, by name."""
    found = {}
    for place, name in enumerate(COUNTERS):
        found[name] = await registerbus.read64(dut, dut.clk_i, COMPLETED + 8 * place)
    return {name: count for name, count in found.items() if count}


async def complete(dut, remote, code, valid=1):
    """A cycle with a completion, whose token is all ones."""
    token_bits = len(dut.completion_i) - 5
    dut.completion_i.value = (remote << 4 | code) << token_bits | (1 << token_bits) - 1
    dut.completed_i.value = valid
    await FallingEdge(dut.clk_i)
    dut.completed_i.value = 0


@cocotb.test()
async def an_end_is_counted_where_it_belongs(dut):
    await begin(dut)
    wanted = {}
    for turn, (remote, code) in enumerate([*((0, c) for c in range(ENDS))] * 2):
        await complete(dut, remote, code)
        name = COUNTERS[code]
        wanted[name] = 1 + turn // ENDS
        assert await counted(dut) == wanted, (remote, code)
    for code in range(STATUSES):
        await complete(dut, 1, code)
        name = "remote_errors" if code else "completed"
        wanted[name] = wanted.get(name, 0) + 1
        assert await counted(dut) == wanted, code


@cocotb.test()
async def what_is_not_taken_is_not_counted(dut):
    await begin(dut)
    for remote, code in itertools.product([0, 1], range(ENDS)):
        await complete(dut, remote, code, valid=0)
    assert await counted(dut) == {}


@cocotb.test()
async def drops_of_a_cycle_are_all_counted(dut):
    await begin(dut)
    random, wanted = bench.rng(), dict.fromkeys(DROPPED, 0)
    for _ in range(300):
        counts = [random.randrange(16) for _ in DROPPED]
        dut.dropped_i.value = sum(count << 4 * place for place, count in enumerate(counts))
        await FallingEdge(dut.clk_i)
        for name, count in zip(DROPPED, counts, strict=True):
            wanted[name] += count
    dut.dropped_i.value = 0
    assert await counted(dut) == wanted


@cocotb.test()
async def it_is_what_it_was_built_as_and_keeps_what_is_set(dut):
    await begin(dut)
    assert await registerbus.read64(dut, dut.clk_i, IDENTITY) == 1 << 32 | MAGIC
    built = NODES | MESSAGE_BYTES << 16 | CHUNK_BYTES << 32 | X << 48
    assert await registerbus.read64(dut, dut.clk_i, BUILD) == built
    await registerbus.write64(dut, dut.clk_i, NODE, 0x12345 << 32 | 0x155)
    await registerbus.write64(dut, dut.clk_i, MEMORY, 0x123_4567_89AB_CDEF)
    await FallingEdge(dut.clk_i)
    assert (int(dut.node_o.value), int(dut.timeout_cycles_o.value)) == (0x155, 0x12345)
    assert int(dut.memory_bytes_o.value) == 0x123_4567_89AB_CDEF
    assert await registerbus.read64(dut, dut.clk_i, NODE) == 0x12345 << 32 | 0x155
