"""em_crc8 gives each control block of golden/wire the check that it has."""

import cocotb
from cocotb.triggers import Timer

from flow import simulate, tools


def test_em_crc8():
    simulate.cocotb("em_crc8", __name__)


@cocotb.test()
async def control_blocks_have_their_check(dut):
    checked = 0
    for row in tools.golden_rows("messages.csv"):
        for text in row["blocks"].split():
            block = int(text, 16)
            payload = block >> 2
            if block & 3 == 1:
                dut.sub_type_i.value = payload >> 8 & 0xFF
                dut.content_i.value = payload >> 16 & (1 << 40) - 1
                await Timer(1, unit="ns")
                assert int(dut.crc_o.value) == payload >> 56, row
                checked += 1
    assert checked > 50
