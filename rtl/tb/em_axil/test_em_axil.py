"""em_axil: each access of AXI4-Lite once on the bus, answered as the bus answers it."""

import itertools

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge

from flow import bench, registerbus, simulate, structs

ACCESSES = 300
WORDS = 16
OKAY, SLAVE_ERROR = 0, 2


def test_em_axil():
    simulate.cocotb("em_axil", __name__)


class Registers:
    """Behind the bus: words that keep what is written, and nothing behind them."""

    def __init__(self, dut):
        self.dut, self.words, self.accesses = dut, [0] * WORDS, 0

    async def serve(self):
        """Answers in the cycle of the access; each lasts one."""
        while True:
            await FallingEdge(self.dut.clk_i)
            asked = registerbus.request(int(self.dut.request_o.value))
            self.dut.response_i.value = 0
            if not asked.valid:
                continue
            self.accesses += 1
            assert asked.address % 4 == 0
            index = asked.address // 4
            if index >= WORDS:
                self.dut.response_i.value = registerbus.response(0xDEAD, error=True)
                continue
            if asked.write:
                old = self.words[index]
                self.words[index] = old & ~asked.enable | asked.data & asked.enable
            self.dut.response_i.value = registerbus.response(
                0 if asked.write else self.words[index]
            )


def answered_now(dut):
    """What the module drives in this cycle."""
    return structs.AXI_LITE_RESPONSE.unpack(dut.s_axil_o.value)


async def taken(dut, axil, names):
    """Waits until all of these handshakes were made; each ends by itself."""
    left = set(names)
    while left:
        await RisingEdge(dut.clk_i)
        done = {name for name in left if getattr(answered_now(dut), f"{name}_ready")}
        await FallingEdge(dut.clk_i)
        axil.set(**{f"{name}_valid": 0 for name in done})
        left -= done


async def answer(dut, axil, channel, draws):
    """Waits for the answer, with its ready late; gives code and data."""
    for _ in range(draws.randrange(3)):
        await FallingEdge(dut.clk_i)
    axil.set(**{f"{channel}_ready": 1})
    while True:
        await RisingEdge(dut.clk_i)
        shown = answered_now(dut)
        if getattr(shown, f"{channel}_valid"):
            await FallingEdge(dut.clk_i)
            axil.set(**{f"{channel}_ready": 0})
            return getattr(shown, f"{channel}_resp"), shown.r_data
        await FallingEdge(dut.clk_i)


async def begin(dut):
    """Quiet inputs, reset, and registers behind the bus."""
    axil = structs.Driver(dut.s_axil_i, structs.AXI_LITE_REQUEST)
    dut.response_i.value = 0
    await bench.start(dut.clk_i, [dut.rst_ni])
    registers = Registers(dut)
    cocotb.start_soon(registers.serve())
    return registers, axil


def strobed(old, data, strobe):
    """A word after a write of some of its bytes."""
    mask = sum(0xFF << 8 * lane for lane in range(4) if strobe >> lane & 1)
    return old & ~mask | data & mask


@cocotb.test()
async def every_access_is_made_once_and_answered(dut):
    registers, axil = await begin(dut)
    draws = bench.rng()
    model = [0] * WORDS
    for _ in range(ACCESSES):
        address, data = draws.randrange(4 * (WORDS + 2)), draws.getrandbits(32)
        inside = address // 4 < WORDS
        if draws.random() < 0.5:
            strobe = draws.getrandbits(4)
            axil.set(aw_valid=1, aw_addr=address)
            # Address and data in any order.
            for _ in range(draws.randrange(3)):
                await FallingEdge(dut.clk_i)
            axil.set(w_valid=1, w_data=data, w_strb=strobe)
            await taken(dut, axil, ["aw", "w"])
            code, _ = await answer(dut, axil, "b", draws)
            if inside:
                model[address // 4] = strobed(model[address // 4], data, strobe)
        else:
            axil.set(ar_valid=1, ar_addr=address)
            await taken(dut, axil, ["ar"])
            code, got = await answer(dut, axil, "r", draws)
            assert not inside or got == model[address // 4]
        assert code == (OKAY if inside else SLAVE_ERROR)
    assert registers.words == model and registers.accesses == ACCESSES


@cocotb.test()
async def reads_and_writes_take_turns(dut):
    _, axil = await begin(dut)
    axil.set(aw_valid=1, w_valid=1, ar_valid=1, b_ready=1, r_ready=1)
    order, answered = [], []
    for _ in range(40):
        await RisingEdge(dut.clk_i)
        shown = answered_now(dut)
        wrote, read = shown.aw_ready, shown.ar_ready
        assert not (wrote and read), "one access at a time"
        order += ["write"] * wrote + ["read"] * read
        for way, channel in [("write", "b"), ("read", "r")]:
            answered += [way] * getattr(shown, f"{channel}_valid")
        await FallingEdge(dut.clk_i)
    assert len(order) > 8
    assert all(first != second for first, second in itertools.pairwise(order))
    # The last may be under way.
    assert answered in (order, order[:-1])
