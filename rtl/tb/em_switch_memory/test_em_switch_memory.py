"""em_switch_memory sends what the Rust model's switch sends, four cycles later."""

import os
from pathlib import Path

import cocotb
import pytest
from cocotb.triggers import Timer

from flow import simulate, switching, tools
from flow.switching import control

SLOTS = int(os.environ.get("RTL_CYCLES", "40000")) // 10
SEED = int(os.environ.get("RTL_SEED", "1"))
CHUNK_BYTES = 128
# From a block in to the block that it causes, less what the model itself takes.
LATENCY = 4
# The scheduler's clock passes 48 bits within the run.
START_CYCLE = (1 << 48) - SLOTS // 2


@pytest.mark.parametrize(
    ("ports", "policy", "failures"),
    [(4, "fcfs", 0), (4, "srpt", 0), (8, "srpt-published", 0), (4, "srpt", 1), (4, "fcfs", 1)],
)
def test_equals_the_model(ports, policy, failures):
    path = tools.OUT / "run" / f"switch-{ports}-{policy}-{failures}-{SEED}.csv"
    switching.trace(ports, policy, SLOTS, failures, SEED, path)
    environment = {"TRACE": path, "POLICY": policy, "FAILURES": failures}
    environment["COCOTB_TEST_FILTER"] = "equals"
    parameters = {"Ports": ports, "ChunkBytes": CHUNK_BYTES}
    simulate.cocotb("em_switch_memory", __name__, parameters, SEED, environment)


def test_budget():
    parameters = {"Ports": 4, "ChunkBytes": CHUNK_BYTES}
    environment = {"COCOTB_TEST_FILTER": "seven"}
    simulate.cocotb("em_switch_memory", __name__, parameters, SEED, environment)


class Bench:
    """The switch with one clock for all ports."""

    def __init__(self, dut):
        self.dut = dut
        self.ports = len(dut.link_up_i)
        self.all = (1 << self.ports) - 1

    async def start(self, policy):
        dut = self.dut
        # Packed structs: the first field is the highest.
        dut.rank_config_i.value = switching.POLICIES[policy] << 23 | (
            1 << 22 | 64 << 10 if policy != "srpt-published" else 0
        )
        dut.control_config_i.value = 0
        dut.window_cycles_i.value = 6
        dut.ahead_cycles_i.value = 16
        dut.link_up_i.value = self.all
        dut.memory_i.value = 0
        dut.memory_ready_i.value = self.all
        dut.frame_up_i.value = dut.frame_down_i.value = 0
        dut.rst_ni.value = dut.rx_rst_ni.value = 0
        for _ in range(3):
            await self.cycle()
        dut.rst_ni.value, dut.rx_rst_ni.value = 1, self.all

    async def cycle(self):
        """A cycle whose inputs are set; gives what the ports show in it."""
        dut = self.dut
        await Timer(1, unit="ns")
        shown = dut.memory_o.value
        dut.clk_i.value, dut.rx_clk_i.value = 1, self.all
        await Timer(1, unit="ns")
        dut.clk_i.value, dut.rx_clk_i.value = 0, 0
        if not shown.is_resolvable:
            return [None] * self.ports
        bits = int(shown)
        return [switching.tx_memory(bits, port) for port in range(self.ports)]


def kind_of(block):
    """Which queue of the egress a unit came from, by its first block."""
    sub_type, opcode = block >> 10 & 0xFF, block >> 18 & 0xF
    if sub_type == 0x66:
        code = block >> 39 & 0xF
        return "word" if opcode == 0 and code in (0, 3) else "status"
    return "chunk" if sub_type == 0x33 and opcode in (2, 3, 4) else "grant"


class Units:
    """The whole units that left each port, by kind."""

    def __init__(self, ports):
        self.open = [[] for _ in range(ports)]
        self.sent = [{"word": [], "status": [], "chunk": [], "grant": []} for _ in range(ports)]

    def put(self, port, block):
        unit = self.open[port]
        unit.append(block)
        control = block & 3 == 1
        starts = control and block >> 10 & 0xFF == 0x33 and len(unit) == 1
        if control and not starts:
            self.close(port)

    def close(self, port):
        self.sent[port][kind_of(self.open[port][0])].append(tuple(self.open[port]))
        self.open[port] = []

    def down(self, port):
        self.open[port] = []


async def until_shown(bench, port, blocks):
    """Sends a message's blocks by port 0; cycles from its last block until `port` shows a block."""
    for block in blocks:
        bench.dut.memory_i.value = block
        assert (await bench.cycle())[port] is None
    bench.dut.memory_i.value = 0
    for cycles in range(1, 40):
        shown = (await bench.cycle())[port]
        if shown:
            return cycles, shown
    raise AssertionError("nothing leaves")


# The budget of a switch, section 3.2.2: identify 1, insert 2, match 3, generate 1; forward 4.
@cocotb.test()
async def grants_and_releases_take_seven_cycles_and_chunks_four(dut):
    bench = Bench(dut)
    await bench.start("fcfs")
    notification = 1 << 4 | 0x81 << 13 | 64 << 21
    cycles, (block, framed, last) = await until_shown(
        bench, 0, [switching.single(control(0x55, notification))]
    )
    grant = 1 << 4 | 0x81 << 13 | 64 << 21
    assert (cycles, block, framed, last) == (7, control(0xAA, grant) << 2 | 1, False, True)

    # The chunk: its first block leaves while its last ones are still to come.
    start = switching.rx_memory(control(0x33, 3), 1, 1, 0, 0)
    data = switching.rx_memory(5, 2, 0, 0, 0)
    end = switching.rx_memory(control(0xCC, 0), 1, 0, 1, 0)
    sent = [start] + 8 * [data] + [end]
    shown = []
    for cycle in range(20):
        dut.memory_i.value = sent[cycle] if cycle < len(sent) else 0
        shown.append((await bench.cycle())[1])
    assert [one is not None for one in shown] == 4 * [False] + 10 * [True] + 6 * [False]
    assert shown[4][0] == control(0x33, 3) << 2 | 1

    request = 1 | 2 << 4 | 9 << 13 | 64 << 21
    blocks = [switching.rx_memory(control(0x33, request), 1, 1, 0, 0), end]
    cycles, (block, framed, last) = await until_shown(bench, 2, blocks)
    released = 1 | 0 << 4 | 9 << 13 | 64 << 21
    assert (cycles, block, framed, last) == (7, control(0x33, released) << 2 | 1, True, False)


@cocotb.test()
async def equals_the_model(dut):
    trace = switching.rows(Path(os.environ["TRACE"]))
    failures = os.environ["FAILURES"] == "1"
    bench = Bench(dut)
    await bench.start(os.environ["POLICY"])
    dut.u_scheduler.now_q.value = START_CYCLE
    end = max(trace) + LATENCY + 1
    up, blocks = bench.all, 0
    got, want = Units(bench.ports), Units(bench.ports)
    nothing = {"in": {}, "out": {}, "up": {}}
    for slot in range(end):
        row = trace.get(slot, nothing)
        memory = 0
        for port, block in row["in"].items():
            memory |= block << switching.RX_BITS * port
        for port, is_up in row["up"].items():
            up = up | 1 << port if is_up else up & ~(1 << port)
            dut.link_up_i.value = up
        dut.memory_i.value = memory
        shown = await bench.cycle()
        due = trace.get(slot - LATENCY, nothing)
        for port in range(bench.ports):
            block = shown[port][0] if shown[port] else None
            expected = due["out"].get(port)
            if not failures:
                assert block == expected, (
                    f"slot {slot - LATENCY}, port {port}: {block and hex(block)}, "
                    f"not {expected and hex(expected)}"
                )
            if block is not None:
                got.put(port, block)
                blocks += 1
            if port in due["up"]:
                got.down(port)
                want.down(port)
            if expected is not None:
                want.put(port, expected)
    assert blocks > SLOTS // 10
    # Words of peers come a cycle later than the model's, so that the last unit may not be whole.
    for port in range(bench.ports):
        for kind, units in want.sent[port].items():
            sent = got.sent[port][kind]
            both = min(len(sent), len(units))
            assert sent[:both] == units[:both], f"port {port}, {kind}"
            assert max(len(sent), len(units)) <= both + 1, f"port {port}, {kind}"
