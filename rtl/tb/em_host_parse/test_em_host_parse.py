"""em_host_parse finds in the blocks of golden/wire the fields that crates/wire put into them."""

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge

from flow import bench, simulate, tools

NONE, GRANT, REQUEST, RESPONSE, WRITE, STATUS = range(6)
FIELDS = {"kind": 3, "peer": 9, "id": 8, "opcode": 4, "code": 4, "too_long": 1, "bytes": 16}
FIELDS |= {"index": 15, "last": 1, "address": 64, "operand_second": 64, "operand": 64}
READ, RESPONSE_OP, POSTED, ACKNOWLEDGED = 1, 2, 3, 4
SOUND, REFUSED, ABORTED = range(3)
BYTES_MAX = (1 << 16) - 1


def test_em_host_parse():
    simulate.cocotb("em_host_parse", __name__)


def rows():
    """What is to be found of each message of the table, its data and its blocks."""
    for row in tools.golden_rows("messages.csv"):
        given = dict(pair.split("=") for pair in row["fields"].split(";"))
        data = bytes.fromhex(given.pop("data", ""))
        number = {name: int(value, 0) for name, value in given.items()}
        found = {"peer": number.pop("node", None), **number}
        found.pop("address_bits", None)
        kind = row["kind"]
        if kind == "notification":
            found = {"kind": NONE}
        elif kind == "grant":
            # One of the table's two grants is of a class that it does not say.
            sound = found.pop("response") != found["id"] >> 7
            found["kind"] = GRANT if sound else NONE
        elif kind == "status":
            found["kind"] = STATUS
        elif kind == "read_request":
            found |= {"kind": REQUEST, "opcode": READ}
            if found["bytes"] > BYTES_MAX:
                found["too_long"] = 1
                del found["bytes"]
        elif kind == "rmw_request":
            found |= {"kind": REQUEST, "bytes": 8}
        else:
            opcode = {"read_response": RESPONSE_OP, "posted_write": POSTED}
            found["opcode"] = opcode.get(kind, ACKNOWLEDGED)
            found |= {"kind": RESPONSE if kind == "read_response" else WRITE, "bytes": len(data)}
        found = {name: value for name, value in found.items() if value is not None}
        yield found, data, [int(block, 16) for block in row["blocks"].split()]


def unpacked(word):
    """arrival_t as fields, the first highest."""
    found = {}
    for name, width in reversed(FIELDS.items()):
        found[name] = word & (1 << width) - 1
        word >>= width
    return found


async def start(dut):
    dut.memory_i.value, dut.enable_i.value = 0, 1
    await bench.start(dut.clk_i, [dut.rst_ni])


async def send(dut, blocks, ending, gaps):
    """Sends a message; gives the words that were passed on and what arrived."""
    words = []
    for i, word in enumerate(blocks):
        while gaps.random() < 0.3:
            dut.memory_i.value = 0
            await FallingEdge(dut.clk_i)
        last = int(i == len(blocks) - 1)
        flags = 1 << 4 | int(i == 0) << 3 | last << 2 | (ending if last else 0)
        dut.memory_i.value = flags << 66 | word
        await RisingEdge(dut.clk_i)
        if int(dut.response_word_o.value) or int(dut.write_word_o.value):
            words.append((int(dut.word_o.value), int(dut.write_word_o.value)))
        ends, peer, row = (int(port.value) for port in (dut.ends_o, dut.peer_o, dut.row_o))
        assert ends == last
        await FallingEdge(dut.clk_i)
    dut.memory_i.value = 0
    assert int(dut.arrived_o.value) == 1
    found = unpacked(int(dut.arrival_o.value))
    if found["kind"] in (REQUEST, RESPONSE, WRITE, GRANT, STATUS):
        assert found["peer"] == peer
        if found["kind"] in (RESPONSE, STATUS):
            assert found["id"] & 7 == row
    await FallingEdge(dut.clk_i)
    assert int(dut.arrived_o.value) == 0
    return words, found


@cocotb.test()
async def every_message_of_the_table_is_understood(dut):
    await start(dut)
    gaps = bench.rng()
    known = list(rows())
    assert len(known) == 44
    for expected, data, blocks in known * 3:
        words, found = await send(dut, blocks, SOUND, gaps)
        for name, value in expected.items():
            if name == "bytes" and found["kind"] == GRANT:
                assert found["bytes"] == value
            assert found[name] == value, (name, expected, found)
        passed = b"".join(word.to_bytes(8, "little") for word, _ in words)
        assert passed[: len(data)] == data
        assert len(passed) == (len(data) + 7) // 8 * 8
        assert all(is_write == int(found["kind"] == WRITE) for _, is_write in words)


@cocotb.test()
async def what_is_not_sound_or_not_wanted_is_nothing(dut):
    await start(dut)
    gaps = bench.rng()
    for _, _, blocks in rows():
        for ending in (REFUSED, ABORTED):
            _, found = await send(dut, blocks, ending, gaps)
            assert found["kind"] == NONE
    dut.enable_i.value = 0
    for word in next(rows())[2]:
        dut.memory_i.value = 0b11100 << 66 | word
        await FallingEdge(dut.clk_i)
        assert int(dut.arrived_o.value) == 0
