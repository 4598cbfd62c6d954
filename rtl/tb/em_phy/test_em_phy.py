"""em_phy on its own line, its clocks out of phase: it fails, says so, and starts anew."""

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge, Timer

from flow import simulate, structs, tools

IDLE = 0x1E << 2 | 1
ORDERED = 0x55
FIRST_IDLES = 4
TAIL_BITS = 66
# From an end's clock to the other's, along the line and back, three times over and more.
START_CYCLES = 200


def test_em_phy():
    simulate.cocotb("em_phy", __name__, {"Scrambled": 0})


async def loop(dut):
    """The line: what the transmitter shows is taken by the receiver's clock, never at an edge."""
    while True:
        await FallingEdge(dut.rx_clk_i)
        dut.line_i.value = dut.line_o.value


async def sent(dut, blocks):
    """Everything that goes on the line."""
    while True:
        await RisingEdge(dut.tx_clk_i)
        slot = structs.LINE_SLOT.unpack(dut.line_o.value)
        blocks.append(slot.payload << 2 | slot.header)


async def heard(dut, blocks):
    """The memory blocks that come in."""
    while True:
        await RisingEdge(dut.rx_clk_i)
        word = int(dut.memory_o.value)
        if word >> 70:
            blocks.append(word & (1 << TAIL_BITS) - 1)


async def start(dut):
    for name in ("signal_i", "slot_i"):
        getattr(dut, name).value = 1
    for name in ("fail_i", "allow_i", "strict_i", "memory_i", "encoded_i", "line_i"):
        getattr(dut, name).value = 0
    dut.tx_rst_ni.value = dut.rx_rst_ni.value = 0
    Clock(dut.tx_clk_i, 2000, unit="ps").start()
    await Timer(700, unit="ps")
    Clock(dut.rx_clk_i, 2000, unit="ps").start()
    await Timer(10, unit="ns")
    dut.tx_rst_ni.value = dut.rx_rst_ni.value = 1
    cocotb.start_soon(loop(dut))
    # Until the line carries what the transmitter sends.
    await Timer(20, unit="ns")


async def offer(dut, block):
    """A block of memory, until it is taken; gives after how many cycles."""
    for cycle in range(START_CYCLES):
        await FallingEdge(dut.tx_clk_i)
        dut.memory_i.value = 1 << 68 | 1 << 66 | block
        await RisingEdge(dut.tx_clk_i)
        if int(dut.memory_ready_o.value):
            await FallingEdge(dut.tx_clk_i)
            dut.memory_i.value = 0
            return cycle
    raise AssertionError("never taken")


async def pulse(dut, signal):
    await FallingEdge(dut.rx_clk_i)
    signal.value = 1
    await FallingEdge(dut.rx_clk_i)
    signal.value = 0


@cocotb.test()
async def a_failed_link_says_so_and_starts_anew_with_idles(dut):
    await start(dut)
    line, memory = [], []
    cocotb.start_soon(sent(dut, line))
    cocotb.start_soon(heard(dut, memory))
    rows = tools.golden_rows("messages.csv")
    block = next(int(row["blocks"], 16) for row in rows if row["kind"] == "notification")
    assert await offer(dut, block) == 0
    await Timer(40, unit="ns")
    for failure in (1, 2, 3):
        line.clear()
        await pulse(dut, dut.fail_i)
        assert not int(dut.up_o.value)
        await Timer(2 * START_CYCLES, unit="ns")
        assert not int(dut.up_o.value), "nobody allowed it"
        payload = line[-1] >> 2
        assert payload & 0xFF == ORDERED and payload >> 40 & 0xFF == failure
        await pulse(dut, dut.allow_i)
        assert await offer(dut, block) < START_CYCLES - 1
        await Timer(40, unit="ns")
        assert int(dut.up_o.value)
        last = max(at for at, sent in enumerate(line) if sent >> 2 & 0xFF == ORDERED)
        assert line[last + 1 : last + 1 + FIRST_IDLES] == [IDLE] * FIRST_IDLES
        assert line[last + 1 + FIRST_IDLES] == block
        assert memory == [block] * (failure + 1)
