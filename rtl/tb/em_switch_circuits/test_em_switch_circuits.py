"""em_switch_circuits: grants in order, used up by the byte; those to a failed port lead nowhere."""

import cocotb
from cocotb.triggers import FallingEdge, Timer

from flow import bench, simulate

PORTS, DEPTH = 4, 4
ALL = (1 << PORTS) - 1


def test_em_switch_circuits():
    simulate.cocotb("em_switch_circuits", __name__, {"Ports": PORTS, "Depth": DEPTH})


class Circuits:
    def __init__(self, dut):
        self.dut = dut

    async def start(self):
        dut = self.dut
        dut.clear_i.value = dut.open_i.value = dut.use_i.value = dut.skip_i.value = 0
        dut.port_up_i.value = ALL
        await bench.start(dut.clk_i, [dut.rst_ni])
        await FallingEdge(dut.clk_i)

    async def open(self, destination, size):
        self.dut.open_destination_i.value, self.dut.open_bytes_i.value = destination, size
        self.dut.open_i.value = 1
        await FallingEdge(self.dut.clk_i)
        self.dut.open_i.value = 0

    async def use(self, size):
        """Where a chunk goes: None if nowhere."""
        dut = self.dut
        dut.use_bytes_i.value, dut.use_i.value = size, 1
        await Timer(1, unit="ps")
        to = int(dut.next_destination_o.value) if int(dut.allowed_o.value) else None
        await FallingEdge(dut.clk_i)
        dut.use_i.value = 0
        return to

    async def skip(self):
        self.dut.skip_i.value = 1
        await FallingEdge(self.dut.clk_i)
        self.dut.skip_i.value = 0


@cocotb.test()
async def chunks_use_grants_in_order_and_never_exceed_them(dut):
    circuits = Circuits(dut)
    await circuits.start()
    assert await circuits.use(1) is None
    await circuits.open(1, 256)
    await circuits.open(2, 64)
    await circuits.open(3, 8)
    assert await circuits.use(200) == 1
    assert await circuits.use(57) is None
    assert await circuits.use(56) == 1
    await circuits.skip()
    assert await circuits.use(8) == 3
    assert not int(dut.next_valid_o.value)


@cocotb.test()
async def grants_to_a_failed_port_keep_their_places_and_lead_nowhere(dut):
    circuits = Circuits(dut)
    await circuits.start()
    await circuits.open(1, 8)
    await circuits.open(2, 8)
    dut.port_up_i.value = ALL & ~2
    await FallingEdge(dut.clk_i)
    dut.port_up_i.value = ALL
    await circuits.open(1, 16)
    assert await circuits.use(8) is None
    assert await circuits.use(8) == 2
    assert await circuits.use(16) == 1


@cocotb.test()
async def it_says_when_it_is_nearly_full(dut):
    circuits = Circuits(dut)
    await circuits.start()
    for count in range(DEPTH):
        assert int(dut.room_o.value) == (count < DEPTH - 1)
        await circuits.open(1, 8)
    dut.clear_i.value = 1
    await FallingEdge(dut.clk_i)
    dut.clear_i.value = 0
    await FallingEdge(dut.clk_i)
    assert int(dut.room_o.value) and not int(dut.next_valid_o.value)
