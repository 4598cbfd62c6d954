"""What a host does when something is missing, repeated, refused or fails, on two hosts."""

import cocotb
from cocotb.triggers import FallingEdge
from host_world import (
    ACKNOWLEDGED,
    BAD_ADDRESS,
    BAD_REQUEST,
    CHUNK_BYTES,
    FETCH_AND_ADD,
    GRANT,
    INCOMPLETE,
    LINK_DISABLED,
    LINK_DOWN,
    NULL,
    OK,
    PEER_DOWN,
    POSTED,
    READ,
    SINGLE,
    START,
    TIMEOUT,
    Op,
    World,
    bits,
    block,
    content_of,
    expect,
    random_op,
)

from flow import simulate

REMOTE_INCOMPLETE, BAD_OPCODE, MISALIGNED = 6, 1, 5
TIMEOUT_CYCLES = 600
DOWN_PEER = 2
# Parameters of the switch and of em_host_pair.
CIRCUITS, NODES = 64, 4


def test_em_host_faults():
    simulate.cocotb("em_host_pair", __name__, {"X": 3})


async def world_of(dut, timeout_cycles=TIMEOUT_CYCLES, share=1.0):
    world = World(dut, share=share, delay_max=5, size=4096)
    world.grant_share = 1.0
    await world.start(timeout_cycles=timeout_cycles)
    return world


async def wait(dut, cycles):
    for _ in range(cycles):
        await FallingEdge(dut.tx_clk_i)


async def ended(world, ops, cycles=4000):
    """Waits until these have ended; gives how."""
    for _ in range(cycles):
        if all(op.done is not None for op in ops):
            await wait(world.dut, 60)
            return [op.done for op in ops]
        await FallingEdge(world.dut.tx_clk_i)
    raise AssertionError([op for op in ops if op.done is None])


async def works(world):
    """All kinds of messages pass, both ways."""
    ops = []
    for h in (0, 1):
        mirror = bytearray(world.memories[1 - h].data)
        for _ in range(12):
            op = random_op(world.draws, 4096, [8, 64, 300])
            expect(op, mirror)
            ops.append((world.submit(h, op), h))
    await ended(world, [op for op, _ in ops], 20_000)
    for op, _ in ops:
        assert op.done == (0, OK), op
        assert op.expected in (None, op.got)
    assert not any(world.owed)


def opcode_of(unit):
    return content_of(unit[0]) & 15


@cocotb.test()
async def a_request_that_cannot_be_one_ends_at_once(dut):
    world = await world_of(dut)
    words = b"\x11" * 64
    bad = [
        Op(READ, 0, 8, peer=1),
        Op(READ, 0, 8, peer=4),
        Op(READ, 0, 0),
        Op(READ, 0, 1025),
        Op(14, 0, 8),
        Op(ACKNOWLEDGED, 0, 64, data=words[:48]),
        Op(POSTED, 0, 63, data=words + words),
    ]
    for op in bad:
        world.submit(0, op)
    assert await ended(world, bad) == [(0, BAD_REQUEST)] * len(bad)
    assert world.log[0] == []
    await works(world)


@cocotb.test()
async def memory_that_refuses_is_told_to_the_requester(dut):
    world = await world_of(dut)
    memory = world.memories[1]
    memory.bad = range(1024, 2048)
    before = bytes(memory.data)
    data = bytes(range(256)) * 4
    cases = [
        (Op(READ, 4090, 7), BAD_ADDRESS),
        (Op(READ, (1 << 40) + 8, 8), BAD_ADDRESS),
        (Op(READ, 1000, 1000), BAD_ADDRESS),
        (Op(ACKNOWLEDGED, 4000, 97, data=data[:97]), BAD_ADDRESS),
        # Its first chunk fails in memory, its last does not.
        (Op(ACKNOWLEDGED, 1900, 600, data=data[:600]), BAD_ADDRESS),
        (Op(FETCH_AND_ADD, 4, 8), MISALIGNED),
        (Op(FETCH_AND_ADD, 4096, 8), BAD_ADDRESS),
        (Op(FETCH_AND_ADD, 1032, 8), BAD_ADDRESS),
    ]
    for op, _ in cases:
        world.submit(0, op)
    found = await ended(world, [op for op, _ in cases], 10_000)
    assert found == [(1, code) for _, code in cases]
    assert memory.data[:1024] == before[:1024]
    assert memory.data[2500:] == before[2500:]
    lost = world.submit(0, Op(POSTED, 4090, 8, data=data[:8]))
    assert await ended(world, [lost]) == [(0, OK)]
    await wait(dut, 100)
    assert world.lost[1] == 0b100
    assert not any(world.owed)
    memory.bad = range(0)
    world.lost = [0, 0]
    await works(world)


@cocotb.test()
async def an_unknown_atomic_is_answered(dut):
    world = await world_of(dut)
    op = world.submit(0, Op(FETCH_AND_ADD, 8, 8, operands=(1, 0)))
    # On its way it becomes an operation that no host knows.
    world.drop = lambda h, kind, unit: (
        unit.__setitem__(0, unit[0] & ~(15 << 18) | 14 << 18) if h == 1 and kind == START else None
    )
    assert await ended(world, [op]) == [(1, BAD_OPCODE)]


@cocotb.test()
async def a_read_without_answer_ends_with_null_and_its_row_waits(dut):
    world = await world_of(dut)
    kept = []

    def keep(h, kind, unit):
        if h == 0 and opcode_of(unit) == 2 and len(kept) < 3:
            kept.append(list(unit))
            return True
        return False

    world.drop = keep
    first = [world.submit(0, Op(READ, 64 * i, 64)) for i in range(3)]
    fourth = world.submit(0, Op(READ, 512, 8))
    assert await ended(world, first) == [(0, TIMEOUT)] * 3
    assert [op.got for op in first] == [b""] * 3
    # Three rows are in quarantine: the fourth never left, and ended in the queue.
    assert await ended(world, [fourth]) == [(0, TIMEOUT)]
    assert len(world.log[0]) == 3
    for unit in kept:
        world.forward(0, unit)
    await wait(dut, 200)
    assert [op.got for op in first] == [b""] * 3
    await works(world)


@cocotb.test()
async def a_write_without_answer_ends_with_null_and_is_not_sent_after_that(dut):
    world = await world_of(dut)
    world.hold_grants = True
    data = bytes(range(200))
    before = bytes(world.memories[1].data)
    op = world.submit(0, Op(ACKNOWLEDGED, 0, 200, data=data))
    queued = [world.submit(0, Op(READ, 0, 8))]
    assert await ended(world, [op, *queued]) == [(0, TIMEOUT)] * 2
    world.hold_grants = False
    await wait(dut, 300)
    assert world.unused[0] == 1
    assert world.memories[1].data == before
    await works(world)
    # Its id was never seen: nine more of them, and the peer could not tell the next from a repeat.
    for _ in range(9):
        world.hold_grants = True
        op = world.submit(0, Op(ACKNOWLEDGED, 0, 8, data=data[:8]))
        await ended(world, [op])
        world.hold_grants = False
        await wait(dut, 100)
    await works(world)


@cocotb.test()
async def a_posted_write_waits_for_its_grants_however_long(dut):
    world = await world_of(dut)
    world.hold_grants = True
    op = world.submit(0, Op(POSTED, 0, 8, data=b"12345678"))
    await wait(dut, 3 * TIMEOUT_CYCLES)
    assert op.done is None
    world.hold_grants = False
    assert await ended(world, [op]) == [(0, OK)]


@cocotb.test()
async def an_acknowledgement_that_is_lost_ends_the_write_with_null(dut):
    world = await world_of(dut)
    kept = []

    def keep(h, kind, unit):
        if h == 0 and kind == SINGLE and not kept:
            kept.append(list(unit))
            return True
        return False

    world.drop = keep
    op = world.submit(0, Op(ACKNOWLEDGED, 0, 8, data=b"12345678"))
    assert await ended(world, [op]) == [(0, TIMEOUT)]
    assert world.memories[1].data[:8] == b"12345678"
    world.forward(0, kept[0])
    await works(world)


@cocotb.test()
async def what_comes_twice_acts_once_and_every_grant_is_answered(dut):
    world = await world_of(dut)
    again = []

    def repeat(h, kind, unit):
        if h == 1 and kind == START and opcode_of(unit) != POSTED:
            again.append(list(unit))
        return False

    world.drop = repeat
    add = world.submit(0, Op(FETCH_AND_ADD, 8, 8, operands=(5, 0)))
    old = int.from_bytes(world.memories[1].data[8:16], "little")
    await ended(world, [add])
    write = world.submit(0, Op(ACKNOWLEDGED, 64, 8, data=b"AAAAAAAA"))
    await ended(world, [write])
    newer = world.submit(0, Op(POSTED, 64, 8, data=b"BBBBBBBB"))
    await ended(world, [newer])
    world.drop = lambda h, kind, unit: False
    assert len(again) == 2
    for unit in again:
        if opcode_of(unit) == FETCH_AND_ADD:
            world.owed[1].append((1, bits(content_of(unit[0]), 13, 8)))
        world.forward(1, unit)
    await wait(dut, 300)
    assert int.from_bytes(world.memories[1].data[8:16], "little") == (old + 5) & (1 << 64) - 1
    assert world.memories[1].data[64:72] == b"BBBBBBBB"
    assert world.unused[1] == 1
    assert world.lost[1] & 1
    assert not any(world.owed)


@cocotb.test()
async def a_missing_chunk_is_told(dut):
    world = await world_of(dut)
    seen = {2: 0, 4: 0}

    def second(h, kind, unit):
        opcode = opcode_of(unit)
        if kind != START or opcode not in seen:
            return False
        seen[opcode] += 1
        return seen[opcode] == 2

    world.drop = second
    read = world.submit(0, Op(READ, 0, 4 * CHUNK_BYTES))
    write = world.submit(0, Op(ACKNOWLEDGED, 1024, 1000, data=bytes(1000)))
    before = bytes(world.memories[1].data)
    assert await ended(world, [read, write]) == [(0, INCOMPLETE), (1, REMOTE_INCOMPLETE)]
    assert read.got == before[:CHUNK_BYTES]
    after = before[:1024] + bytes(CHUNK_BYTES) + before[1024 + CHUNK_BYTES :]
    assert world.memories[1].data == after
    await works(world)


@cocotb.test()
async def a_message_that_was_given_up_leaves_no_trace(dut):
    world = await world_of(dut)
    before = bytes(world.memories[1].data)
    for ending in (1, 2):
        header = block(START, 0 << 8 | POSTED)
        unit = [header, 0xAB << 2 | 2, 0xCD << 2 | 2, block(0xCC, 0)]
        world.forward(1, unit, ending)
        world.forward(0, [block(START, 99 << 21 | 8 << 13 | 2 << 4 | 2), *unit[1:]], ending)
    await wait(dut, 50)
    assert world.memories[1].data == before
    await works(world)


@cocotb.test()
async def a_grant_that_fits_no_message_is_answered(dut):
    world = await world_of(dut)
    write, read = 0x80, 0x00
    for name, length in ((write, 64), (write | 7, 1), (read, 8), (read | 7, 256)):
        world.grant(0, name, length, int(name < write))
    await wait(dut, 200)
    assert world.unused[0] == 4
    # A grant of another class than it says: ignored, and not owed.
    world.forward(0, [block(GRANT, 64 << 21 | write << 13 | 2 << 4 | 1)])
    await wait(dut, 100)
    assert world.unused[0] == 4
    # Too much or too little of a message that is open.
    world.hold_grants = True
    op = world.submit(0, Op(POSTED, 0, 300, data=bytes(range(150)) * 2))
    await wait(dut, 60)
    name = world.demands[0][0][0][0]
    for length in (300, 100, 257):
        world.grant(0, name, length, 0)
    await wait(dut, 100)
    assert world.unused[0] == 7
    assert op.done is None
    world.hold_grants = False
    assert await ended(world, [op]) == [(0, OK)]
    await wait(dut, 100)
    await works(world)


@cocotb.test()
async def word_of_a_peer_ends_what_hangs_on_it_and_is_answered(dut):
    world = await world_of(dut, timeout_cycles=100_000)
    world.hold_grants = True
    data = bytes(64)
    ops = [world.submit(0, Op(ACKNOWLEDGED, 0, 64, data=data)) for _ in range(4)]
    ops += [world.submit(0, Op(READ, 0, 300))]
    await wait(dut, 200)
    down = block(SINGLE, LINK_DISABLED << 21 | DOWN_PEER << 4)
    world.forward(0, [down])
    assert await ended(world, ops) == [(0, PEER_DOWN)] * 5
    assert world.heard[0] == [DOWN_PEER]
    refused = world.submit(0, Op(READ, 0, 8))
    assert await ended(world, [refused]) == [(0, PEER_DOWN)]
    # What was granted before leads nowhere and is answered all the same.
    world.hold_grants = False
    await wait(dut, 300)
    assert not world.owed[0]
    world.forward(1, [block(SINGLE, LINK_DISABLED << 21 | 1 << 4)])
    await wait(dut, 100)
    assert world.heard[1] == [1]
    world.forward(0, [block(SINGLE, DOWN_PEER << 4)])
    world.forward(1, [block(SINGLE, 1 << 4)])
    await wait(dut, 50)
    await works(world)


@cocotb.test()
@cocotb.parametrize(after=[20, 90, 333, 700])
async def a_link_that_fails_ends_all_and_starts_anew(dut, after):
    world = await world_of(dut, timeout_cycles=100_000, share=0.8)
    ops = [world.submit(h, random_op(world.draws, 4096)) for h in (0, 1) for _ in range(40)]
    await wait(dut, after)
    world.up = [0, 0]
    for _ in range(5000):
        await FallingEdge(dut.rx_clk_i)
        for queue in world.down:
            queue.clear()
        if all(op.done for op in ops) and int(dut.settled_o.value) == 3:
            break
    assert all(op.done in ((0, OK), (0, LINK_DOWN)) for op in ops)
    assert any(op.done == (0, LINK_DOWN) for op in ops)
    late = world.submit(0, Op(READ, 0, 8))
    assert await ended(world, [late]) == [(0, LINK_DOWN)]
    world.forget()
    world.up = [1, 1]
    await wait(dut, 60)
    unreached = world.submit(0, Op(READ, 0, 8))
    assert await ended(world, [unreached]) == [(0, PEER_DOWN)]
    world.forward(0, [block(SINGLE, OK << 21 | DOWN_PEER << 4)])
    world.forward(1, [block(SINGLE, OK << 21 | 1 << 4)])
    await wait(dut, 60)
    await works(world)
    assert NULL not in [code for op in ops for code in [op.done[1]] if op.done[0]]


async def restart(world, cycles=5000):
    """The links are down until the hosts are settled, and come up; nothing has come by them yet."""
    world.up = [0, 0]
    for i in range(cycles):
        await FallingEdge(world.dut.rx_clk_i)
        for queue in world.down:
            queue.clear()
        if i > 10 and int(world.dut.settled_o.value) == 3:
            break
    else:
        raise AssertionError("a host does not settle")
    world.forget()
    world.up = [1, 1]
    await FallingEdge(world.dut.rx_clk_i)


@cocotb.test()
async def what_comes_right_behind_the_start_of_a_link_is_taken(dut):
    world = await world_of(dut)
    for _ in range(3):
        await restart(world)
        world.forward(0, [block(SINGLE, OK << 21 | DOWN_PEER << 4)])
        world.forward(1, [block(SINGLE, OK << 21 | 1 << 4)])
        await wait(dut, 60)
        await works(world)


@cocotb.test()
@cocotb.parametrize(after=range(9))
async def a_link_that_fails_again_at_once_starts_anew(dut, after):
    world = await world_of(dut)
    await restart(world)
    for _ in range(after):
        await FallingEdge(dut.rx_clk_i)
    await restart(world)
    world.forward(0, [block(SINGLE, LINK_DISABLED << 21 | 3 << 4)])
    world.forward(0, [block(SINGLE, OK << 21 | DOWN_PEER << 4)])
    world.forward(1, [block(SINGLE, OK << 21 | 1 << 4)])
    await wait(dut, 60)
    # The answer to word that a peer is gone is not lost, either.
    assert world.heard[0] == [3]
    await works(world)


@cocotb.test()
async def no_link_starts_before_all_peers_are_forgotten(dut):
    world = await world_of(dut)
    world.up = [0, 0]
    dut.tx_rst_ni.value = dut.rx_rst_ni.value = 0
    await wait(dut, 4)
    dut.tx_rst_ni.value = dut.rx_rst_ni.value = 1
    settled = []
    for _ in range(30):
        await FallingEdge(dut.rx_clk_i)
        settled.append(int(dut.settled_o.value))
    # A cycle for each of three messages of each of four nodes.
    assert settled[:12] == [0] * 12
    assert settled[20:] == [3] * 10


def flood(world, count):
    """So many grants that no message of host 0 is for."""
    for _ in range(count):
        world.grant(0, 0x80, 64, 0)


@cocotb.test()
async def all_that_a_switch_can_leave_open_waits_for_a_transmitter(dut):
    world = await world_of(dut)
    world.ready_share = 0
    flood(world, CIRCUITS)
    # Of each peer that it is joined and that it is gone: the next one waits for the answer.
    peers = [peer for peer in range(NODES) if peer != world.node(0)]
    for code in (OK, LINK_DISABLED):
        for peer in peers:
            world.forward(0, [block(SINGLE, code << 21 | peer << 4)])
    await wait(dut, 200)
    assert not world.down[0]
    world.ready_share = 1
    await wait(dut, 600)
    assert world.unused[0] == CIRCUITS and world.heard[0] == peers
    assert world.lost == [0, 0] and int(dut.fail_o.value) == 0
    world.forward(0, [block(SINGLE, OK << 21 | DOWN_PEER << 4)])
    await wait(dut, 60)
    await works(world)


@cocotb.test()
async def more_than_can_be_kept_fails_the_link(dut):
    world = await world_of(dut, timeout_cycles=100_000)
    world.ready_share = 0
    late = world.submit(0, Op(READ, 0, 8))
    flood(world, CIRCUITS + 2 * NODES + 16)
    await wait(dut, 200)
    assert world.lost == [0b1000, 0]
    # Until its edge has failed it; it is not up again by itself.
    assert int(dut.fail_o.value) == 1
    assert await ended(world, [late]) == [(0, LINK_DOWN)]
    assert await ended(world, [world.submit(0, Op(READ, 0, 8))]) == [(0, LINK_DOWN)]
    assert int(dut.fail_o.value) == 1
    world.ready_share = world.share
    await restart(world)
    assert int(dut.fail_o.value) == 0
    world.lost = [0, 0]
    world.forward(0, [block(SINGLE, OK << 21 | DOWN_PEER << 4)])
    world.forward(1, [block(SINGLE, OK << 21 | 1 << 4)])
    await wait(dut, 60)
    await works(world)


@cocotb.test()
async def data_on_offer_when_the_link_fails_is_held_and_the_rest_is_dropped(dut):
    world = await world_of(dut, timeout_cycles=100_000)
    world.take_reads = False
    data = bytes(world.memories[1].data)
    reads = [world.submit(0, Op(READ, 1024 * i, 1024)) for i in range(3)]
    await wait(dut, 600)
    await restart(world)
    assert await ended(world, reads) == [(0, LINK_DOWN)] * 3
    # The one word that was on offer; what waited behind it is of before.
    offered = int(dut.read_o.value)
    assert bits(offered, 0, 64) == int.from_bytes(data[:8], "little")
    await wait(dut, 300)
    assert int(dut.read_valid_o.value) & 1 and int(dut.read_o.value) == offered
    world.take_reads = True
    await wait(dut, 100)
    assert world.late == [1, 0] and [op.got for op in reads] == [b""] * 3
    world.forward(0, [block(SINGLE, OK << 21 | DOWN_PEER << 4)])
    world.forward(1, [block(SINGLE, OK << 21 | 1 << 4)])
    await wait(dut, 60)
    await works(world)
