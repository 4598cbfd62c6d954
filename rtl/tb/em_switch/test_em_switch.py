"""em_switch: memory and Ethernet share its ports, whose receivers have clocks of their own."""

import os

import cocotb
import pytest
from cocotb.triggers import Timer

from flow import bench, simulate, switching
from flow.frames import IDLE, Frames, blocks
from flow.switching import control, framed, single

PORTS = 4
DEMANDS_MAX = 3
CYCLES = int(os.environ.get("RTL_CYCLES", "100000")) // 20
BLOCK_BITS = 66
ALL = (1 << PORTS) - 1


# One part in a thousand, ten times what a link may have; with long chunks, between which a line
# rests less often, as much as a link may have. The longest chunk of the wire is 4,096 B.
# Besides the horizon of a reset, the least and the most that its register can hold.
@pytest.mark.parametrize(
    ("chunk_bytes", "half_period_ps", "horizon"),
    [
        (128, 10010, "6 16"),
        (128, 9990, "6 16"),
        (128, 9990, "0 0"),
        (128, 9990, "31 63"),
        (4096, 9999, "6 16"),
    ],
)
def test_em_switch(chunk_bytes, half_period_ps, horizon):
    parameters = {"Ports": PORTS, "ChunkBytes": chunk_bytes, "ElasticCycles": 1}
    parameters |= {"FrameBlocks": 512, "Entries": 64}
    environment = {"CHUNK_BYTES": chunk_bytes, "HALF_PERIOD_PS": half_period_ps}
    environment["HORIZON"] = horizon
    seed = int(os.environ.get("RTL_SEED", "1"))
    simulate.cocotb("em_switch", __name__, parameters, seed, environment)


def field(content, low, bits):
    return content >> low & (1 << bits) - 1


class Nodes:
    """All nodes: they ask, answer what is granted, and send each other frames."""

    def __init__(self, draws, chunk_bytes):
        self.draws, self.chunk_bytes = draws, chunk_bytes
        self.lines = [[] for _ in range(PORTS)]
        self.frame_lines = [[] for _ in range(PORTS)]
        self.frames = [Frames() for _ in range(PORTS)]
        self.units = [[] for _ in range(PORTS)]
        # Bytes not granted yet of (source, destination, of a response); chunks and frames sent.
        self.open = {}
        self.chunks, self.sent = {}, {}
        self.got, self.source_of = {}, {}

    def demand(self, stream, size):
        waiting = self.open.setdefault(stream, [])
        if len(waiting) >= DEMANDS_MAX:
            return False
        waiting.append(size)
        return True

    def ask(self, port):
        draws = self.draws
        peer = (port + draws.randrange(1, PORTS)) % PORTS
        size = draws.choice([1, 8, 64, 100, 2 * self.chunk_bytes + 44])
        content = peer << 4 | draws.randrange(128) << 13 | size << 21
        if draws.random() < 0.5:
            if self.demand((port, peer, 0), size):
                self.lines[port].append(single(control(0x55, content)))
        elif self.demand((peer, port, 1), size):
            self.lines[port] += framed([control(0x33, content | 1), control(0xCC, 77 << 8)])

    def grant(self, port, peer, response, size):
        """Sends the chunk that was granted."""
        waiting = self.open[port, peer, response]
        waiting[0] -= size
        assert waiting[0] >= 0
        if waiting[0] == 0:
            waiting.pop(0)
        start = 2 | size % 8 << 21 if response else 3 | size % 8 << 4
        start |= self.draws.getrandbits(15) << 25
        data = [self.draws.getrandbits(64) for _ in range((size + 7) // 8)]
        unit = framed([control(0x33, start), *data, control(0xCC, self.draws.getrandbits(40))])
        self.lines[port] += unit
        chunk = tuple(block & (1 << BLOCK_BITS) - 1 for block in unit)
        self.chunks.setdefault((port, peer), []).append(chunk)
        self.source_of[chunk] = port

    def hear(self, port, block, last):
        unit = self.units[port]
        unit.append(block)
        if not last:
            return
        self.units[port] = []
        content, sub_type = field(unit[0], 18, 40), field(unit[0], 10, 8)
        opcode, peer = content & 15, field(content, 4, 9)
        if sub_type == 0xAA:
            self.grant(port, peer, content & 1, field(content, 21, 16))
        elif opcode == 1:
            self.grant(port, peer, 1, min(field(content, 21, 16), self.chunk_bytes))
        else:
            chunk = tuple(unit)
            self.got.setdefault((self.source_of[chunk], port), []).append(chunk)

    def send_frame(self, port, peer=None):
        """A frame to a station, or to all."""
        station = bytes([2, 0, 0, 0, 0, peer]) if peer is not None else bytes(6 * [0xFF])
        size = self.draws.choice([46, 51, 100, 400])
        frame = station + bytes([2, 0, 0, 0, 0, port, 8, 0]) + self.draws.randbytes(size)
        self.frame_lines[port] += [*blocks(frame), IDLE, IDLE]
        for to in [peer] if peer is not None else set(range(PORTS)) - {port}:
            self.sent.setdefault((port, to), []).append(frame)


async def receivers(dut, nodes, half_period_ps):
    """The receivers' side, a block of memory or of a frame a cycle."""
    while True:
        memory, rx = 0, 0
        for port in range(PORTS):
            line = nodes.lines[port]
            if line:
                memory |= line.pop(0) << switching.RX_BITS * port
            frames = nodes.frame_lines[port]
            rx |= (frames.pop(0) if frames else IDLE) << BLOCK_BITS * port
        dut.memory_i.value, dut.encoded_rx_i.value = memory, rx
        dut.encoded_rx_valid_i.value = ALL
        await Timer(half_period_ps, unit="ps")
        dut.rx_clk_i.value = ALL
        await Timer(half_period_ps, unit="ps")
        dut.rx_clk_i.value = 0


class Transmitters:
    """The transmitters' side: each slot is memory's or a frame's, and a unit is not interrupted."""

    def __init__(self, dut, nodes):
        self.dut, self.nodes = dut, nodes
        self.open, self.asked = 0, 0

    async def cycle(self):
        dut, nodes = self.dut, self.nodes
        ready = self.open | nodes.draws.getrandbits(PORTS)
        dut.memory_ready_i.value, dut.encoder_ready_i.value = ready, ALL & ~ready
        await Timer(10000, unit="ps")
        memory, frames = int(dut.memory_o.value), int(dut.encoded_tx_o.value)
        for port in range(PORTS):
            shown = switching.tx_memory(memory, port)
            assert shown or not self.open >> port & 1, "a unit ran dry"
            if shown and ready >> port & 1:
                block, is_framed, last = shown
                self.open = self.open & ~(1 << port) | (is_framed and not last) << port
                nodes.hear(port, block, last)
            if self.asked >> port & 1:
                nodes.frames[port].put(frames >> BLOCK_BITS * port & (1 << BLOCK_BITS) - 1)
        self.asked = ALL & ~ready
        dut.clk_i.value = 1
        await Timer(10000, unit="ps")
        dut.clk_i.value = 0


@cocotb.test()
async def memory_and_frames_pass_together(dut):
    chunk_bytes = int(os.environ["CHUNK_BYTES"])
    nodes = Nodes(bench.rng(), chunk_bytes)
    out = Transmitters(dut, nodes)
    dut.rank_config_i.value = 2 << 23 | 1 << 22 | 64 << 10
    dut.control_config_i.value = 1 << 8 | 32
    dut.window_cycles_i.value, dut.ahead_cycles_i.value = map(int, os.environ["HORIZON"].split())
    dut.link_up_i.value = ALL
    dut.clk_i.value = dut.rx_clk_i.value = dut.rst_ni.value = dut.rx_rst_ni.value = 0
    dut.memory_ready_i.value = dut.encoder_ready_i.value = 0
    cocotb.start_soon(receivers(dut, nodes, int(os.environ["HALF_PERIOD_PS"])))
    for level in (0, 1, 0, 1, 0):
        dut.clk_i.value = level
        await Timer(19000, unit="ps")
    dut.rst_ni.value, dut.rx_rst_ni.value = 1, ALL
    for _ in range(80):
        await out.cycle()
    for port in range(PORTS):
        nodes.send_frame(port)
    # No unit is interrupted: the longer they are, the fewer slots are left to frames.
    period = 100 * chunk_bytes // 128
    for cycle in range(CYCLES + 3000 * chunk_bytes // 128):
        if cycle < CYCLES:
            for port in range(PORTS):
                if nodes.draws.random() < 0.03:
                    nodes.ask(port)
            turn, port = divmod(cycle, period)
            if cycle > 1000 and port < PORTS:
                nodes.send_frame(port, (port + 1 + turn % 3) % PORTS)
        await out.cycle()
    assert all(not waiting for waiting in nodes.open.values()), "something was never granted"
    assert nodes.got == nodes.chunks and len(nodes.source_of) > CYCLES // 50
    assert sum(map(len, nodes.sent.values())) > 2 * CYCLES // period
    for (source, port), frames in nodes.sent.items():
        mine = [frame for frame in nodes.frames[port].whole if frame[11] == source]
        assert mine == frames, f"from {source} to {port}"
