"""em_axil: each access of AXI4-Lite once on the bus, answered as the bus answers it."""

import itertools

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge

from flow import bench, registerbus, simulate

ACCESSES = 300
WORDS = 16
OKAY, SLAVE_ERROR = 0, 2
INPUTS = "awvalid awaddr wvalid wdata wstrb bready arvalid araddr rready"


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


async def taken(dut, names):
    """Waits until all of these handshakes were made; each ends by itself."""
    left = set(names)
    while left:
        await RisingEdge(dut.clk_i)
        done = {name for name in left if int(getattr(dut, f"s_axil_{name}ready_o").value)}
        await FallingEdge(dut.clk_i)
        for name in done:
            getattr(dut, f"s_axil_{name}valid_i").value = 0
        left -= done


async def answer(dut, channel, draws):
    """Waits for the answer, with its ready late; gives code and data."""
    ready = getattr(dut, f"s_axil_{channel}ready_i")
    for _ in range(draws.randrange(3)):
        await FallingEdge(dut.clk_i)
    ready.value = 1
    while True:
        await RisingEdge(dut.clk_i)
        if int(getattr(dut, f"s_axil_{channel}valid_o").value):
            code = int(getattr(dut, f"s_axil_{channel}resp_o").value)
            data = int(dut.s_axil_rdata_o.value)
            await FallingEdge(dut.clk_i)
            ready.value = 0
            return code, data
        await FallingEdge(dut.clk_i)


async def begin(dut):
    """Quiet inputs, reset, and registers behind the bus."""
    for name in INPUTS.split():
        getattr(dut, f"s_axil_{name}_i").value = 0
    dut.response_i.value = 0
    await bench.start(dut.clk_i, [dut.rst_ni])
    registers = Registers(dut)
    cocotb.start_soon(registers.serve())
    return registers


def strobed(old, data, strobe):
    """A word after a write of some of its bytes."""
    mask = sum(0xFF << 8 * lane for lane in range(4) if strobe >> lane & 1)
    return old & ~mask | data & mask


@cocotb.test()
async def every_access_is_made_once_and_answered(dut):
    registers, draws = await begin(dut), bench.rng()
    model = [0] * WORDS
    for _ in range(ACCESSES):
        address, data = draws.randrange(4 * (WORDS + 2)), draws.getrandbits(32)
        inside = address // 4 < WORDS
        if draws.random() < 0.5:
            strobe = draws.getrandbits(4)
            dut.s_axil_awvalid_i.value, dut.s_axil_awaddr_i.value = 1, address
            # Address and data in any order.
            for _ in range(draws.randrange(3)):
                await FallingEdge(dut.clk_i)
            dut.s_axil_wvalid_i.value, dut.s_axil_wdata_i.value = 1, data
            dut.s_axil_wstrb_i.value = strobe
            await taken(dut, ["aw", "w"])
            code, _ = await answer(dut, "b", draws)
            if inside:
                model[address // 4] = strobed(model[address // 4], data, strobe)
        else:
            dut.s_axil_arvalid_i.value, dut.s_axil_araddr_i.value = 1, address
            await taken(dut, ["ar"])
            code, got = await answer(dut, "r", draws)
            assert not inside or got == model[address // 4]
        assert code == (OKAY if inside else SLAVE_ERROR)
    assert registers.words == model and registers.accesses == ACCESSES


@cocotb.test()
async def reads_and_writes_take_turns(dut):
    await begin(dut)
    for name in ["awvalid", "wvalid", "arvalid", "bready", "rready"]:
        getattr(dut, f"s_axil_{name}_i").value = 1
    order, answered = [], []
    for _ in range(40):
        await RisingEdge(dut.clk_i)
        wrote, read = (int(getattr(dut, f"s_axil_{way}ready_o").value) for way in ("aw", "ar"))
        assert not (wrote and read), "one access at a time"
        order += ["write"] * wrote + ["read"] * read
        for way, channel in [("write", "b"), ("read", "r")]:
            answered += [way] * int(getattr(dut, f"s_axil_{channel}valid_o").value)
        await FallingEdge(dut.clk_i)
    assert len(order) > 8
    assert all(first != second for first, second in itertools.pairwise(order))
    # The last may be under way.
    assert answered in (order, order[:-1])
