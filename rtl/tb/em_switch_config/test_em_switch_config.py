"""em_switch_config: what software sets is what the scheduler has, each field its own."""

import cocotb
from cocotb.triggers import FallingEdge

from flow import bench, registerbus, simulate

IDENTITY, BUILD, POLICY, HORIZON = 0x00, 0x08, 0x10, 0x18
PORTS, ACTIVE, CHUNK_BYTES = 6, 5, 128
PARAMETERS = {"Ports": PORTS, "NotificationsMax": ACTIVE, "ChunkBytes": CHUNK_BYTES}
MAGIC = int.from_bytes(b"EMSW", "little")
# Of a register: each field's first bit, its bits and its value after reset.
POLICY_FIELDS = {
    "policy": (0, 2, 2),
    "counts_late": (2, 1, 1),
    "late_bytes_min": (8, 22, 1 << 16),
    "counts_control": (32, 1, 1),
    "control_blocks_free": (40, 8, 32),
}
HORIZON_FIELDS = {"window_cycles": (0, 5, 6), "ahead_cycles": (32, 6, 16)}
FIELDS = POLICY_FIELDS | HORIZON_FIELDS


def test_em_switch_config():
    simulate.cocotb("em_switch_config", __name__, PARAMETERS)


async def begin(dut):
    dut.bus_i.value = 0
    await bench.start(dut.clk_i, [dut.rst_ni])


def shown(dut):
    """What the scheduler is told, by the field that says it."""
    rank, control = int(dut.rank_config_o.value), int(dut.control_config_o.value)
    return {
        "policy": rank >> 23,
        "counts_late": rank >> 22 & 1,
        "late_bytes_min": rank & (1 << 22) - 1,
        "counts_control": control >> 8,
        "control_blocks_free": control & 0xFF,
        "window_cycles": int(dut.window_cycles_o.value),
        "ahead_cycles": int(dut.ahead_cycles_o.value),
    }


def word(fields, values):
    """A register with these values."""
    return sum(values[name] << first for name, (first, _, _) in fields.items())


@cocotb.test()
async def after_reset_it_has_what_its_page_says(dut):
    await begin(dut)
    assert shown(dut) == {name: value for name, (_, _, value) in FIELDS.items()}
    assert await registerbus.read64(dut, dut.clk_i, IDENTITY) == 1 << 32 | MAGIC
    built = PORTS | ACTIVE << 16 | CHUNK_BYTES << 32
    assert await registerbus.read64(dut, dut.clk_i, BUILD) == built


@cocotb.test()
async def each_field_is_set_by_itself(dut):
    await begin(dut)
    random = bench.rng()
    for _ in range(50):
        values = {name: random.randrange(1 << bits) for name, (_, bits, _) in FIELDS.items()}
        for place, fields in [(POLICY, POLICY_FIELDS), (HORIZON, HORIZON_FIELDS)]:
            wanted = word(fields, values)
            await registerbus.write64(dut, dut.clk_i, place, wanted)
            await FallingEdge(dut.clk_i)
            assert await registerbus.read64(dut, dut.clk_i, place) == wanted
        assert shown(dut) == values


@cocotb.test()
async def half_a_write_changes_nothing(dut):
    await begin(dut)
    before = shown(dut)
    for place in (POLICY, HORIZON):
        await registerbus.write(dut, dut.clk_i, place, 0)
        await FallingEdge(dut.clk_i)
    assert shown(dut) == before
