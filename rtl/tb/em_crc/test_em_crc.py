"""The CRCs give the check values of the catalogue, however cut, and those of golden/wire."""

import zlib

import cocotb
import pytest
from cocotb.triggers import Timer

from flow import bench, simulate, tools

# Bits, and what the catalogue of CRCs has for the nine octets "123456789".
CHECKS = {"em_crc16": (16, 0x906E), "em_crc32c": (32, 0xE3069283), "em_crc32": (32, 0xCBF43926)}
OCTETS_MAX = 8
NODE_BITS = 0x1FF << 4
REQUESTS = ["read_request", "rmw_request"]


@pytest.mark.parametrize("top", CHECKS)
def test_em_crc(top):
    simulate.cocotb(top, __name__)


async def crc(dut, pieces):
    """The complement of the register after `pieces`, octets of at most eight."""
    ones = (1 << CHECKS[dut._name][0]) - 1
    register = ones
    for piece in pieces:
        dut.crc_i.value, dut.octets_i.value = register, len(piece)
        # Octets that do not count are anything.
        dut.data_i.value = int.from_bytes(piece.ljust(OCTETS_MAX, b"\xa5"), "little")
        await Timer(1, unit="ns")
        register = int(dut.crc_o.value)
    return register ^ ones


def cut(octets, draws):
    """Pieces of random lengths, empty ones among them."""
    while octets:
        length = draws.randint(0, OCTETS_MAX)
        yield octets[:length]
        octets = octets[length:]


@cocotb.test()
async def the_check_value_comes_out_however_the_octets_are_cut(dut):
    draws = bench.rng()
    for _ in range(200):
        assert await crc(dut, cut(b"123456789", draws)) == CHECKS[dut._name][1]
    if dut._name == "em_crc32":
        for length in range(100):
            octets = draws.randbytes(length)
            assert await crc(dut, cut(octets, draws)) == zlib.crc32(octets)


def covered(row):
    """The octets that a message's check covers, block by block, and the check in its /MT/."""
    words = [int(block, 16) >> 2 for block in row["blocks"].split()]
    first, *middle, last = words
    content, end = first >> 16 & (1 << 40) - 1, last >> 16 & (1 << 40) - 1
    if row["kind"] in REQUESTS:
        content &= ~NODE_BITS
    bits = 16 if row["kind"] == "rmw_request" and "address_bits=40" in row["fields"] else 32
    before = (40 - bits) // 8
    pieces = [content.to_bytes(5, "little"), *(word.to_bytes(8, "little") for word in middle)]
    pieces.append((end & (1 << 8 * before) - 1).to_bytes(before, "little"))
    return bits, pieces, end >> 8 * before


@cocotb.test()
async def messages_end_in_their_check(dut):
    if dut._name == "em_crc32":
        return
    checked = 0
    for row in tools.golden_rows("messages.csv"):
        if " " not in row["blocks"] or (
            row["kind"] == "read_request" and "address_bits=40" in row["fields"]
        ):
            continue
        bits, pieces, check = covered(row)
        if bits == CHECKS[dut._name][0]:
            assert await crc(dut, pieces) == check, row
            checked += 1
    assert checked >= (6 if dut._name == "em_crc16" else 20)
