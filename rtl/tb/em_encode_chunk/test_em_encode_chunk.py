"""em_encode_chunk emits the blocks of golden/wire for every chunk, and unused grants."""

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge

from flow import bench, simulate, tools

FIELDS = {"null_answer": 1, "opcode": 4, "node": 9, "id": 8, "index": 15, "last": 1}
FIELDS |= {"bytes": 16, "address": 64}
OPCODES = {"read_response": 2, "posted_write": 3, "acknowledged_write": 4}
# /MST/ of opcode 0 with code NULL, for node 300 and id 90: as the table's status of opcode 1.
VALID_BIT, LAST_BIT = 68, 66


def test_em_encode_chunk():
    simulate.cocotb("em_encode_chunk", __name__)


def packed(fields):
    """The fields as chunk_fields_t has them, the first highest."""
    word = 0
    for name, bits in FIELDS.items():
        word = word << bits | fields.get(name, 0)
    return word


def rows():
    """Fields, data and blocks of the chunks in the table."""
    for row in tools.golden_rows("messages.csv"):
        if row["kind"] in OPCODES:
            given = dict(pair.split("=") for pair in row["fields"].split(";"))
            data = bytes.fromhex(given.pop("data"))
            fields = {name: int(value, 0) for name, value in given.items()}
            fields |= {"opcode": OPCODES[row["kind"]], "bytes": len(data)}
            yield fields, data, [int(block, 16) for block in row["blocks"].split()]


async def start(dut):
    dut.valid_i.value = dut.memory_ready_i.value = dut.flush_i.value = 0
    await bench.start(dut.clk_i, [dut.rst_ni])


async def run(dut, sent, share):
    """Sends chunks, gives the units that came and the cycles from first to last block."""
    draws, found, unit, cycles = bench.rng(3), [], [], 0
    waiting = list(sent)
    words, at = [], 0
    while len(found) < len(sent):
        dut.valid_i.value = int(bool(waiting) and draws.random() < share)
        dut.fields_i.value = packed(waiting[0][0]) if waiting else 0
        dut.memory_ready_i.value = int(draws.random() < share)
        await RisingEdge(dut.clk_i)
        word = int(dut.memory_o.value)
        cycles += bool(found or unit or word >> VALID_BIT)
        if word >> VALID_BIT and int(dut.memory_ready_i.value):
            unit.append(word & (1 << 66) - 1)
            if word >> LAST_BIT & 1:
                found.append(unit)
                unit = []
        took = int(dut.data_ready_o.value)
        started = int(dut.valid_i.value) and int(dut.ready_o.value)
        await FallingEdge(dut.clk_i)
        at += took
        if started:
            data = waiting.pop(0)[1]
            # What is behind the last byte is anything.
            padded = data + draws.randbytes(-len(data) % 8)
            words = [int.from_bytes(padded[i : i + 8], "little") for i in range(0, len(data), 8)]
            at = 0
        dut.data_i.value = words[at] if at < len(words) else draws.getrandbits(64)
    return found, cycles


@cocotb.test()
@cocotb.parametrize(share=[1.0, 0.6])
async def every_chunk_of_the_table_comes_out(dut, share):
    await start(dut)
    known = list(rows())
    assert len(known) >= 12
    draws = bench.rng()
    sent = [draws.choice(known) for _ in range(40)] + known
    found, cycles = await run(dut, sent, share)
    for unit, (fields, _, blocks) in zip(found, sent, strict=True):
        assert unit == blocks, fields
    if share == 1.0:
        # Without a gap, within a chunk or between two.
        assert cycles == sum(len(blocks) for *_, blocks in sent)


@cocotb.test()
async def an_unused_grant_is_one_block(dut):
    await start(dut)
    fields = {"null_answer": 1, "node": 300, "id": 90, "opcode": 2, "bytes": 64}
    ((block,),), _ = await run(dut, [(fields, b"", None)], 1.0)
    table = {row["fields"]: row["blocks"] for row in tools.golden_rows("messages.csv")}
    read = int(table["opcode=1;node=300;id=90;code=4"], 16)
    content = (1 << 40) - 1 << 18
    assert block & content == (read & content) & ~(1 << 18)
    assert block >> 2 & 0xFFFF == 0x6600
