"""em_control_decode gives each block of golden/wire the verdict that crates/wire gives it."""

import cocotb
from cocotb.triggers import Timer

from flow import simulate, tools


def test_em_control_decode():
    simulate.cocotb("em_control_decode", __name__)


async def verdict(dut, block):
    """What a block of 66 bits is found to be."""
    dut.header_i.value, dut.payload_i.value = block & 3, block >> 2
    await Timer(1, unit="ns")
    found = {
        "valid": dut.edm_o,
        "sync": dut.bad_sync_o,
        "type": dut.bad_type_o,
        "sub_type": dut.bad_sub_type_o,
        "crc": dut.bad_crc_o,
    }
    raised = [name for name, signal in found.items() if int(signal.value)]
    assert len(raised) <= 1, raised
    return raised[0] if raised else "not_edm"


@cocotb.test()
async def every_error_of_the_table_is_seen(dut):
    rows = tools.golden_rows("errors.csv")
    assert len(rows) > 500
    for row in rows:
        assert await verdict(dut, int(row["received"], 16)) == row["verdict"], row


@cocotb.test()
async def every_message_is_split_into_its_fields(dut):
    checked = 0
    for row in tools.golden_rows("messages.csv"):
        for text in row["blocks"].split():
            block = int(text, 16)
            found = await verdict(dut, block)
            assert found == ("valid" if block & 3 == 1 else "not_edm"), row
            if found == "valid":
                payload = block >> 2
                assert int(dut.sub_type_o.value) == payload >> 8 & 0xFF
                assert int(dut.content_o.value) == payload >> 16 & (1 << 40) - 1
                checked += 1
    assert checked > 50


@cocotb.test()
async def blocks_of_others_pass_without_a_finding(dut):
    octets = [0x1E, 0x2D, 0x33, 0x4B, 0x55, 0x66, 0x78, 0x87]
    octets += [0x99, 0xAA, 0xB4, 0xCC, 0xD2, 0xE1, 0xFF]
    for octet in range(1, 256):
        found = await verdict(dut, (0x0123456789AB << 16 | octet) << 2 | 1)
        assert found == ("not_edm" if octet in octets else "type")
