"""em_encode_request emits the blocks of golden/wire for every request, notification and status."""

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge

from flow import bench, simulate, tools

FIELDS = {"sub_type": 8, "acknowledged": 1, "opcode": 4, "node": 9, "id": 8, "bytes": 16}
FIELDS |= {"code": 4, "address": 64, "operand_second": 64, "operand": 64}
SUB_TYPES = {"notification": 0x55, "status": 0x66, "read_request": 0x33, "rmw_request": 0x33}
BYTES_MAX = (1 << 16) - 1


def test_em_encode_request():
    simulate.cocotb("em_encode_request", __name__)


def packed(fields):
    """The fields as control_fields_t has them, the first highest."""
    word = 0
    for name, bits in FIELDS.items():
        word = word << bits | fields.get(name, 0)
    return word


def rows():
    """What the table has of messages that this encodes: fields and blocks."""
    for row in tools.golden_rows("messages.csv"):
        if row["kind"] not in SUB_TYPES:
            continue
        given = (pair.split("=") for pair in row["fields"].split(";"))
        fields = {name: int(value, 0) for name, value in given}
        fields["sub_type"] = SUB_TYPES[row["kind"]]
        if row["kind"] == "read_request":
            fields["opcode"] = 1
        # Lengths above 65,535 B are not this host's; a small address in the long form neither.
        short = fields.get("address_bits") == 40 or fields.get("address", 1 << 40) >> 40
        if fields.get("bytes", 0) <= BYTES_MAX and short:
            yield fields, [int(block, 16) for block in row["blocks"].split()]


async def start(dut):
    dut.valid_i.value = dut.memory_ready_i.value = dut.flush_i.value = 0
    await bench.start(dut.clk_i, [dut.rst_ni])


async def units(dut, count, gaps, share):
    """Takes `count` units; gives the blocks of each."""
    found, unit = [], []
    while len(found) < count:
        dut.memory_ready_i.value = int(gaps.random() < share)
        await RisingEdge(dut.clk_i)
        word = int(dut.memory_o.value)
        if word >> 68 & 1 and int(dut.memory_ready_i.value):
            unit.append((word >> 2 & (1 << 64) - 1) << 2 | word & 3)
            framed, last = word >> 67 & 1, word >> 66 & 1
            assert framed == int(len(unit) > 1 or not last)
            if last:
                found.append(unit)
                unit = []
        await FallingEdge(dut.clk_i)
    return found


@cocotb.test()
@cocotb.parametrize(share=[1.0, 0.5])
async def every_message_of_the_table_comes_out(dut, share):
    await start(dut)
    known = list(rows())
    assert len(known) == 25
    draws = bench.rng()
    sent = [draws.choice(known) for _ in range(200)] + known
    words = [packed(fields) for fields, _ in sent]
    offered = bench.send(
        dut.clk_i, dut.valid_i, dut.ready_o, dut.fields_i, words, bench.rng(1), share
    )
    cocotb.start_soon(offered)
    found = await units(dut, len(sent), bench.rng(2), share)
    for unit, (fields, blocks) in zip(found, sent, strict=True):
        assert unit == blocks, fields


@cocotb.test()
async def the_first_block_takes_one_edge_and_the_rest_follow(dut):
    await start(dut)
    fields, blocks = max(rows(), key=lambda row: len(row[1]))
    dut.valid_i.value, dut.fields_i.value, dut.memory_ready_i.value = 1, packed(fields), 1
    assert int(dut.ready_o.value) == 1
    for block in blocks:
        await FallingEdge(dut.clk_i)
        dut.valid_i.value = 0
        word = int(dut.memory_o.value)
        assert word >> 68 == 1
        assert word & (1 << 66) - 1 == block


@cocotb.test()
async def a_flush_ends_what_is_under_way(dut):
    await start(dut)
    fields, blocks = max(rows(), key=lambda row: len(row[1]))
    dut.valid_i.value, dut.fields_i.value = 1, packed(fields)
    await FallingEdge(dut.clk_i)
    dut.valid_i.value, dut.flush_i.value = 0, 1
    await FallingEdge(dut.clk_i)
    dut.flush_i.value = 0
    assert int(dut.memory_o.value) >> 68 == 0
    dut.valid_i.value, dut.memory_ready_i.value = 1, 1
    await FallingEdge(dut.clk_i)
    assert int(dut.memory_o.value) & (1 << 66) - 1 == blocks[0]
