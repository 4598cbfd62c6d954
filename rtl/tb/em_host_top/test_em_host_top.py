"""em_host_top, its line looped back: what its parts tell each other beside messages."""

import zlib

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge

from flow import bench, simulate
from flow.switching import control

LINK = 0x400
CONTROL, STATUS, STARTED = LINK, LINK + 0x08, LINK + 0x38
GRANTS_LOST = 0x90
START, UP = 1, 1
GRANT, REMOTE_FAULT, NAME, PEER = 0xAA, 0x55, 0x80, 1
# More than a switch can leave open, and two words of each peer.
FLOOD = 100
IDLES, CONTROLS = 0x0707070707070707, 0xFF


def test_em_host_top():
    simulate.cocotb("em_host_top", __name__, {"Scrambled": 0})


class Line:
    """What leaves comes back in the next cycle, but for blocks of the bench."""

    def __init__(self, dut):
        self.dut, self.others, self.faults = dut, [], 0

    async def carry(self):
        dut = self.dut
        while True:
            await RisingEdge(dut.tx_clk_i)
            valid, data = int(dut.line_tx_valid_o.value), int(dut.line_tx_data_o.value)
            header = int(dut.line_tx_hdr_o.value)
            self.faults += valid and header == 1 and data & 0xFF == REMOTE_FAULT
            await FallingEdge(dut.tx_clk_i)
            if self.others:
                valid, header, data = 1, 1, self.others.pop(0)
            dut.line_rx_valid_i.value, dut.line_rx_data_i.value = valid, data
            dut.line_rx_hdr_i.value = header


async def begin(dut):
    """Quiet inputs, reset, and a link that is up."""
    names = [name for name in dir(dut) if name.endswith("_i") and "clk" not in name]
    for name in names:
        getattr(dut, name).value = 0
    dut.line_signal_i.value = dut.line_tx_slot_i.value = 1
    dut.xgmii_tx_data_i.value, dut.xgmii_tx_control_i.value = IDLES, CONTROLS
    dut.line_rx_hdr_i.value = 1
    cocotb.start_soon(same_clock(dut))
    await bench.start(dut.tx_clk_i, [dut.tx_rst_ni, dut.rx_rst_ni])
    line = Line(dut)
    cocotb.start_soon(line.carry())
    await write(dut, CONTROL, START)
    await wait(dut, 300)
    assert await read(dut, STATUS) & UP
    return line


async def same_clock(dut):
    """One clock is the other."""
    while True:
        await dut.tx_clk_i.value_change
        dut.rx_clk_i.value = dut.tx_clk_i.value


async def wait(dut, cycles):
    for _ in range(cycles):
        await FallingEdge(dut.tx_clk_i)


async def until(dut, signal):
    """Waits for an edge with this high."""
    while True:
        await RisingEdge(dut.tx_clk_i)
        found = int(signal.value)
        await FallingEdge(dut.tx_clk_i)
        if found:
            return


async def write(dut, address, data):
    """Writes a register by AXI4-Lite."""
    dut.s_axil_awaddr_i.value, dut.s_axil_wdata_i.value = address, data
    dut.s_axil_wstrb_i.value = 0xF
    dut.s_axil_awvalid_i.value = dut.s_axil_wvalid_i.value = dut.s_axil_bready_i.value = 1
    await until(dut, dut.s_axil_awready_o)
    dut.s_axil_awvalid_i.value = dut.s_axil_wvalid_i.value = 0
    await until(dut, dut.s_axil_bvalid_o)


async def read(dut, address):
    """Reads a register by AXI4-Lite."""
    dut.s_axil_araddr_i.value = address
    dut.s_axil_arvalid_i.value = 1
    await until(dut, dut.s_axil_arready_o)
    dut.s_axil_arvalid_i.value = 0
    while not int(dut.s_axil_rvalid_o.value):
        await FallingEdge(dut.tx_clk_i)
    data = int(dut.s_axil_rdata_o.value)
    dut.s_axil_rready_i.value = 1
    await FallingEdge(dut.tx_clk_i)
    dut.s_axil_rready_i.value = 0
    return data


@cocotb.test()
async def a_full_grant_queue_fails_the_link_for_both_ends(dut):
    line = await begin(dut)
    line.faults = 0
    # Nothing is answered meanwhile.
    dut.line_tx_slot_i.value = 0
    line.others = [control(GRANT, 64 << 21 | NAME << 13 | PEER << 4)] * FLOOD
    await wait(dut, FLOOD + 20)
    assert not await read(dut, STATUS) & UP
    assert await read(dut, GRANTS_LOST) > 0
    dut.line_tx_slot_i.value = 1
    await wait(dut, 20)
    assert line.faults > 5
    # And it starts anew, once.
    await wait(dut, 400)
    assert await read(dut, STATUS) & UP
    assert await read(dut, STARTED) == 2


async def offer(dut, words):
    """Words of the MAC, each until it is taken."""
    for data, characters in words:
        dut.xgmii_tx_data_i.value, dut.xgmii_tx_control_i.value = data, characters
        await until(dut, dut.xgmii_tx_ready_o)
    dut.xgmii_tx_data_i.value, dut.xgmii_tx_control_i.value = IDLES, CONTROLS


async def heard(dut, words):
    """What comes up to the MAC, but for idles."""
    while True:
        await RisingEdge(dut.rx_clk_i)
        word = int(dut.xgmii_rx_data_o.value), int(dut.xgmii_rx_control_o.value)
        if int(dut.xgmii_rx_valid_o.value) and word != (IDLES, CONTROLS):
            words.append(word)


@cocotb.test()
async def a_frame_that_its_mac_gives_up_does_not_fail_the_link(dut):
    await begin(dut)
    came = []
    cocotb.start_soon(heard(dut, came))
    body = bytes(range(60))
    body += zlib.crc32(body).to_bytes(4, "little")
    middle = [(int.from_bytes(body[i : i + 8], "little"), 0) for i in range(0, 64, 8)]
    frame = [(0xD5555555555555FB, 1), *middle, (0x07070707070707FD, 0xFF)]
    gap = [(IDLES, CONTROLS)] * 2
    error = (0xFEFEFEFEFEFEFEFE, 0xFF)
    await offer(dut, [*frame, *gap, *frame[:4], error, *frame[5:], *gap, *frame, *gap])
    await wait(dut, 200)
    assert await read(dut, STATUS) & UP and await read(dut, STARTED) == 1
    # The other MAC hears of the sound ones alone.
    assert came == frame * 2
