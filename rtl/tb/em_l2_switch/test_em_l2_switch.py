"""em_l2_switch: frames bit by bit to where their stations are, to all others, in order; bounded."""

import os

import cocotb
from cocotb.triggers import Timer

from flow import bench, simulate
from flow.frames import IDLE, TERMINATE, Frames, blocks

PORTS = 4
BLOCK_BITS = 66
EPOCH_CYCLES = 6000
GROUP = bytes.fromhex("01005e000001")
RESERVED = bytes.fromhex("0180c200000e")
BROADCAST = bytes(6 * [0xFF])
# The longest frame of the bench has 179.
FRAME_BLOCKS = 256


def test_em_l2_switch():
    parameters = {
        "Ports": PORTS,
        "FrameBlocks": FRAME_BLOCKS,
        "Frames": 16,
        "Entries": 64,
        "EpochCycles": EPOCH_CYCLES,
    }
    simulate.cocotb("em_l2_switch", __name__, parameters, int(os.environ.get("RTL_SEED", "1")))


def station(port, number=0):
    return bytes([0x02, 0, 0, 0, number, port])


def frame(destination, source, payload):
    return destination + source + b"\x08\x00" + payload


class Bridge:
    """The switch with one clock, its inputs and what leaves."""

    def __init__(self, dut, share=1.0):
        self.dut, self.share, self.draws = dut, share, bench.rng(7)
        self.lines = [[] for _ in range(PORTS)]
        self.out = [Frames() for _ in range(PORTS)]
        self.asked = 0
        self.events = {"dropped": 0, "filtered": 0, "flooded": 0}
        self.cycles = 0

    async def start(self):
        dut = self.dut
        dut.port_up_i.value = (1 << PORTS) - 1
        dut.encoded_rx_valid_i.value = dut.encoded_rx_i.value = dut.encoder_ready_i.value = 0
        dut.rst_ni.value = dut.rx_rst_ni.value = 0
        for _ in range(3):
            await self.cycle()
        dut.rst_ni.value, dut.rx_rst_ni.value = 1, (1 << PORTS) - 1
        # The table forgets what its memory held.
        await self.run(80)

    def send(self, port, what, late=False):
        """Queues a frame and its gap."""
        self.lines[port] += [*blocks(what, late), IDLE, IDLE]

    async def cycle(self):
        dut = self.dut
        rx = 0
        for port, line in enumerate(self.lines):
            rx |= (line.pop(0) if line else IDLE) << BLOCK_BITS * port
        ready = 0
        for port in range(PORTS):
            ready |= (self.draws.random() < self.share) << port
        dut.encoded_rx_valid_i.value = (1 << PORTS) - 1
        dut.encoded_rx_i.value, dut.encoder_ready_i.value = rx, ready
        await Timer(1, unit="ns")
        if int(dut.rst_ni.value):
            assert int(dut.encoded_tx_valid_o.value) == self.asked
            bits = int(dut.encoded_tx_o.value)
            for port in range(PORTS):
                if self.asked >> port & 1:
                    self.out[port].put(bits >> BLOCK_BITS * port & (1 << BLOCK_BITS) - 1)
            events = int(dut.events_o.value)
            for port in range(PORTS):
                for at, name in enumerate(("flooded", "filtered", "dropped")):
                    self.events[name] += events >> 3 * port + at & 1
        self.asked = ready if int(dut.rst_ni.value) else 0
        dut.clk_i.value, dut.rx_clk_i.value = 1, (1 << PORTS) - 1
        await Timer(1, unit="ns")
        dut.clk_i.value, dut.rx_clk_i.value = 0, 0
        self.cycles += 1

    async def run(self, cycles):
        for _ in range(cycles):
            await self.cycle()

    async def drain(self):
        while any(self.lines):
            await self.cycle()
        await self.run(400)

    def taken(self):
        """What came out since the last call, by port."""
        got = [frames.whole for frames in self.out]
        for frames in self.out:
            frames.whole = []
        return got


@cocotb.test()
async def it_learns_floods_and_filters(dut):
    bridge = Bridge(dut)
    await bridge.start()
    payload = bytes(46)
    unknown = frame(station(2), station(0), payload)
    bridge.send(0, unknown)
    await bridge.drain()
    assert bridge.taken() == [[], [unknown], [unknown], [unknown]]
    back = frame(station(0), station(2), payload + b"back")
    bridge.send(2, back, late=True)
    await bridge.drain()
    assert bridge.taken() == [[back], [], [], []]
    bridge.send(0, unknown, late=True)
    await bridge.drain()
    assert bridge.taken() == [[], [], [unknown], []]
    for group in (GROUP, BROADCAST):
        several = frame(group, station(1), payload)
        bridge.send(1, several)
        await bridge.drain()
        assert bridge.taken() == [[several], [], [several], [several]]
    # To no one: a group that no bridge forwards, a station of the same port.
    bridge.send(1, frame(RESERVED, station(1), payload))
    bridge.send(2, frame(station(2), station(2, 1), payload))
    await bridge.drain()
    assert bridge.taken() == [[], [], [], []]
    assert bridge.events == {"dropped": 0, "filtered": 2, "flooded": 3}
    # A stranger whose bits fold to the place of a station that is known.
    stranger = frame(bytes([0x02, 0x41, 0, 0, 0, 2]), station(0), payload)
    bridge.send(0, stranger)
    await bridge.drain()
    assert bridge.taken() == [[], [stranger], [stranger], [stranger]]
    # A station that moves is found where it was heard last.
    bridge.send(3, frame(station(1), station(0), payload))
    bridge.send(1, back)
    await bridge.drain()
    assert bridge.taken()[3] == [back]


@cocotb.test()
async def it_forgets_who_is_silent(dut):
    bridge = Bridge(dut)
    await bridge.start()
    heard = frame(station(1), station(0), bytes(46))
    bridge.send(0, heard)
    await bridge.drain()
    bridge.taken()
    answer = frame(station(0), station(1), bytes(50))
    bridge.send(1, answer)
    await bridge.run(60)
    assert bridge.taken() == [[answer], [], [], []]
    await bridge.run(2 * EPOCH_CYCLES)
    bridge.send(1, answer)
    await bridge.drain()
    assert bridge.taken() == [[answer], [], [answer], [answer]]


@cocotb.test()
@cocotb.parametrize(share=[1.0, 0.5])
async def random_frames_arrive_once_and_in_order(dut, share):
    bridge = Bridge(dut, share)
    await bridge.start()
    draws = bridge.draws
    for port in range(PORTS):
        bridge.send(port, frame(BROADCAST, station(port), bytes(46)))
        await bridge.drain()
    bridge.taken()
    want = {(s, d): [] for s in range(PORTS) for d in range(PORTS)}
    for number in range(160):
        source = draws.randrange(PORTS)
        to = (source + draws.randrange(1, PORTS)) % PORTS
        size = draws.choice([46, 47, 50, 53, 60, 100, draws.randrange(46, 1400)])
        payload = number.to_bytes(2, "little") + draws.randbytes(size - 2)
        group = draws.random() < 0.1
        made = frame(GROUP if group else station(to), station(source), payload)
        for port in range(PORTS):
            if port == to or (group and port != source):
                want[source, port].append(made)
        bridge.send(source, made, late=draws.random() < 0.3)
        # No port is offered more than it can send, so that nothing is dropped.
        await bridge.run(int((len(bridge.lines[source]) + 20) * (4 if group else 2) / share))
    await bridge.drain()
    await bridge.run(2000)
    got = bridge.taken()
    assert bridge.events["dropped"] == 0
    for (source, port), frames in want.items():
        assert [one for one in got[port] if one[6:12] == station(source)] == frames
    assert sum(map(len, got)) == sum(map(len, want.values()))


@cocotb.test()
async def frames_for_another_port_follow_each_other_at_line_rate(dut):
    bridge = Bridge(dut)
    await bridge.start()
    for port in range(PORTS):
        bridge.send(port, frame(BROADCAST, station(port), bytes(46)))
        await bridge.drain()
    bridge.taken()
    made = [frame(station(1), station(0), bytes([n]) * (46 + n % 8)) for n in range(160)]
    deficit = 0
    for one in made:
        sent = blocks(one)
        gap = 16 - TERMINATE.index(sent[-1] >> 2 & 0xFF)
        idles = 1 if deficit + 12 - gap <= 3 else 2
        deficit = max(0, deficit + 12 - gap) if idles == 1 else 0
        bridge.lines[0] += sent + idles * [IDLE]
    slots, before = len(bridge.lines[0]), bridge.cycles
    while len(bridge.out[1].whole) < len(made) and bridge.cycles < before + 2 * slots:
        await bridge.cycle()
    assert bridge.taken()[1] == made
    # As long as they took to come, and the latency of one.
    assert bridge.cycles - before < slots + 30


@cocotb.test()
async def an_overloaded_port_drops_whole_frames_and_counts_them(dut):
    bridge = Bridge(dut)
    await bridge.start()
    for port in range(PORTS):
        bridge.send(port, frame(BROADCAST, station(port), bytes(46)))
        await bridge.drain()
    bridge.taken()
    sent = []
    for number in range(120):
        for port in (1, 2, 3):
            made = frame(station(0), station(port), bytes([number]) * (46 + number))
            sent.append(made)
            bridge.send(port, made)
    await bridge.drain()
    await bridge.run(2000)
    got = bridge.taken()[0]
    assert len(got) + bridge.events["dropped"] == len(sent) and bridge.events["dropped"] > 0
    for port in (1, 2, 3):
        mine = [one for one in got if one[6:12] == station(port)]
        order = [one for one in sent if one[6:12] == station(port)]
        assert mine == [one for one in order if one in set(mine)] and len(mine) > 10
