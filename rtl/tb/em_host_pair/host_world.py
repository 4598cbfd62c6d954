"""The world around two hosts: a scripted switch, callers, and memories behind AXI."""

import os
from collections import deque
from dataclasses import dataclass, field

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge, Timer

from flow import bench

CHUNK_BYTES = 256
MESSAGE_BYTES = 1024
# Numbers of the two hosts.
NODES = tuple(int(node) for node in os.environ.get("HOST_NODES", "1 2").split())
READ, RESPONSE, POSTED, ACKNOWLEDGED = 1, 2, 3, 4
COMPARE_AND_SWAP, FETCH_AND_ADD, SWAP, AND, OR, XOR = 8, 9, 10, 11, 12, 13
NOTIFICATION, GRANT, SINGLE, START, END = 0x55, 0xAA, 0x66, 0x33, 0xCC
OK, BAD_ADDRESS, LINK_DISABLED, NULL = 0, 2, 3, 4
DONE, TIMEOUT, INCOMPLETE, PEER_DOWN, LINK_DOWN, BAD_REQUEST = range(6)
SOUND, REFUSED, ABORTED = 0, 1, 2
MASK64 = (1 << 64) - 1
# Of a host, towards its caller and its memory.
STREAMS = ["completion", "read", "aw", "w", "ar"]
BURST_BOUNDARY = 4096
SLAVE_ERROR = 2


def block(sub_type, content):
    """A control block; its CRC was checked before a host sees it."""
    return (content << 16 | sub_type << 8) << 2 | 1


def content_of(word):
    """The 40 content bits of a block."""
    return word >> 18 & (1 << 40) - 1


def bits(word, first, count):
    """A field of a word."""
    return word >> first & (1 << count) - 1


def pack(values, width):
    """Two hosts' values as one number."""
    return values[1] << width | values[0]


@dataclass
class Op:
    """A request, and what it is to give."""

    opcode: int
    address: int
    length: int
    data: bytes = b""
    operands: tuple = (0, 0)
    peer: int = None
    expected: bytes = None
    completion: tuple = (0, DONE)
    got: bytes = b""
    done: tuple = None

    def is_write(self):
        """Whether it brings data."""
        return self.opcode in (POSTED, ACKNOWLEDGED)


def modified(op, old):
    """What an atomic leaves of a word."""
    first, second = op.operands
    return {
        COMPARE_AND_SWAP: second if old == first else old,
        FETCH_AND_ADD: (old + first) & MASK64,
        SWAP: first,
        AND: old & first,
        OR: old | first,
        XOR: old ^ first,
    }[op.opcode]


@dataclass
class Memory:
    """Memory behind AXI4: writes act as late as they may, reads as early."""

    size: int
    draws: object
    share: float = 0.7
    bad: range = range(0)
    delay_max: int = 0
    data: bytearray = None
    addresses: deque = field(default_factory=deque)
    beats: deque = field(default_factory=deque)
    answers: deque = field(default_factory=deque)
    reads: deque = field(default_factory=deque)
    now: int = 0

    def __post_init__(self):
        self.data = bytearray(self.draws.randbytes(self.size))

    def response(self, address):
        """What memory answers for an address."""
        return SLAVE_ERROR if address in self.bad else 0

    def drive(self):
        """What the memory's outputs and readies are in this cycle."""
        self.now += 1
        gone = self.share >= 1
        ready = [int(gone or self.draws.random() < self.share) for _ in range(5)]
        answer = self.answers[0] if self.answers and self.answers[0][0] <= self.now else None
        read = self.reads[0] if self.reads and self.reads[0][0] <= self.now else None
        self.offers = (answer if ready[3] else None, read if ready[4] else None)
        return ready

    def write(self, address, length):
        """A burst of writes begins."""
        assert address // BURST_BOUNDARY == (address + 8 * length - 1) // BURST_BOUNDARY
        self.addresses.append((address, length))

    def beat(self, data, strobe, last):
        """A beat of data came."""
        self.beats.append((data, strobe, last))

    def read(self, address, length):
        """A burst of reads came."""
        assert address // BURST_BOUNDARY == (address + 8 * length - 1) // BURST_BOUNDARY
        for i in range(length):
            at = address + 8 * i
            word = int.from_bytes(self.data[at : at + 8], "little")
            when = self.now + self.draws.randint(0, self.delay_max)
            self.reads.append((when, word, self.response(at)))

    def settle(self):
        """Bursts whose data is all there get an answer, a while later."""
        while self.addresses and len(self.beats) >= self.addresses[0][1]:
            address, length = self.addresses.popleft()
            burst = [self.beats.popleft() for _ in range(length)]
            assert [last for *_, last in burst] == [0] * (length - 1) + [1]
            when = self.now + self.draws.randint(0, self.delay_max)
            self.answers.append((when, address, burst))

    def apply(self):
        """The oldest answered burst acts."""
        _, address, burst = self.answers.popleft()
        if self.response(address):
            return
        for i, (data, strobe, _) in enumerate(burst):
            for lane in range(8):
                if strobe >> lane & 1:
                    self.data[address + 8 * i + lane] = data >> 8 * lane & 0xFF


class World:
    """Two hosts joined by a switch that grants in the order of each pair, at random times."""

    def __init__(self, dut, seed=0, share=0.7, delay_max=20, size=1 << 14):
        self.dut, self.share = dut, share
        self.draws = bench.rng(seed)
        self.memories = [
            Memory(size, bench.rng(seed + 10 + h), share=share, delay_max=delay_max) for h in (0, 1)
        ]
        self.ops = ([], [])
        self.submitted = [0, 0]
        self.words = [deque(), deque()]
        self.down = [deque(), deque()]
        self.units = [[], []]
        self.heard = [[], []]
        self.owed = [deque(), deque()]
        self.demands = [[deque(), deque()] for _ in (0, 1)]
        self.unused = [0, 0]
        self.lost = [0, 0]
        self.up = [1, 1]
        self.grant_share = 0.3
        self.ready_share = share
        self.partial = [[], []]
        self.drop = lambda h, kind, unit: False
        self.log = ([], [])
        self.hold_grants = False
        self.take_reads, self.late = True, [0, 0]
        self.stable = [{name: bench.Stable(f"{name} of {h}") for name in STREAMS} for h in (0, 1)]

    async def start(self, tx_ps=2560, rx_ps=2560, timeout_cycles=100_000, rx_phase_ps=700):
        """Clocks, reset, and everything around the hosts."""
        dut = self.dut
        inputs = "memory_i memory_ready_i request_valid_i request_i write_valid_i write_i "
        inputs += "completion_ready_i read_ready_i awready_i wready_i bvalid_i bresp_i arready_i "
        inputs += "rvalid_i rdata_i rresp_i"
        for name in inputs.split():
            getattr(dut, name).value = 0
        dut.node_i.value = pack(NODES, 9)
        dut.timeout_cycles_i.value = timeout_cycles
        dut.memory_bytes_i.value = self.memories[0].size
        dut.up_i.value = 0
        dut.tx_rst_ni.value = dut.rx_rst_ni.value = 0
        cocotb.start_soon(clock_of(dut.tx_clk_i, tx_ps, 0))
        cocotb.start_soon(clock_of(dut.rx_clk_i, rx_ps, rx_phase_ps))
        for _ in range(4):
            await FallingEdge(dut.tx_clk_i)
            await FallingEdge(dut.rx_clk_i)
        dut.tx_rst_ni.value = dut.rx_rst_ni.value = 1
        while int(dut.settled_o.value) != 3:
            await FallingEdge(dut.rx_clk_i)
        dut.up_i.value = 3
        for _ in range(40):
            await FallingEdge(dut.tx_clk_i)
        cocotb.start_soon(self.transmit_clock())
        cocotb.start_soon(self.receive_clock())

    def node(self, h):
        """The node of a host."""
        return NODES[h]

    def submit(self, h, op):
        """Queues a request of a host; memory is changed as the order of the pair says."""
        if op.peer is None:
            op.peer = self.node(1 - h)
        self.ops[h].append(op)
        if op.is_write():
            padded = op.data + b"\xee" * (-len(op.data) % 8)
            count = len(padded) // 8
            for i in range(count):
                word = int.from_bytes(padded[8 * i : 8 * i + 8], "little")
                self.words[h].append(int(i == count - 1) << 64 | word)
        return op

    def request(self, h):
        """The next request of a host, as request_t."""
        index = self.submitted[h]
        if index == len(self.ops[h]):
            return None
        op = self.ops[h][index]
        word = op.operands[1] << 64 | op.operands[0]
        for value, width in ((op.address, 64), (op.length, 16), (op.peer, 9), (op.opcode, 4)):
            word = word << width | value
        return word << 16 | index & 0xFFFF

    def chance(self):
        """One in a random share of the cycles."""
        return int(self.share >= 1 or self.draws.random() < self.share)

    async def transmit_clock(self):
        """Callers' requests and data in, completions and blocks out."""
        dut, both = self.dut, (0, 1)
        offered, writing = [None, None], [0, 0]
        while True:
            for h in both:
                if offered[h] is None and self.chance():
                    offered[h] = self.request(h)
                if not writing[h]:
                    writing[h] = int(bool(self.words[h]) and self.chance())
            ready = [int(self.draws.random() < self.ready_share) for _ in both]
            accept = [self.chance() for _ in both]
            dut.request_valid_i.value = pack([int(word is not None) for word in offered], 1)
            dut.request_i.value = pack([word or 0 for word in offered], 237)
            dut.write_valid_i.value = pack(writing, 1)
            dut.write_i.value = pack([self.words[h][0] if writing[h] else 0 for h in both], 65)
            dut.memory_ready_i.value = pack(ready, 1)
            dut.completion_ready_i.value = pack(accept, 1)
            await RisingEdge(dut.tx_clk_i)
            request_ready, write_ready = (
                int(dut.request_ready_o.value),
                int(dut.write_ready_o.value),
            )
            blocks, valid = int(dut.memory_o.value), int(dut.completion_valid_o.value)
            ends = int(dut.completion_o.value)
            for h in both:
                end = valid >> h & 1, accept[h], bits(ends, 21 * h, 21)
                self.stable[h]["completion"].pass_edge(*end)
                if offered[h] is not None and request_ready >> h & 1:
                    offered[h] = None
                    self.submitted[h] += 1
                if writing[h] and write_ready >> h & 1:
                    self.words[h].popleft()
                    writing[h] = 0
                self.take_block(h, blocks >> 69 * h, ready[h])
                if valid >> h & 1 and accept[h]:
                    self.complete(h, ends >> 21 * h)
            await FallingEdge(dut.tx_clk_i)

    def complete(self, h, word):
        """A completion came."""
        op = self.ops[h][bits(word, 0, 16)]
        assert op.done is None, "a request ends once"
        op.done = (bits(word, 20, 1), bits(word, 16, 4))

    def take_block(self, h, word, ready):
        """A block left a host, perhaps."""
        if not (ready and word >> 68 & 1):
            return
        self.partial[h].append(word & (1 << 66) - 1)
        assert (word >> 67 & 1) == int(len(self.partial[h]) > 1 or not word >> 66 & 1)
        if word >> 66 & 1:
            unit, self.partial[h] = self.partial[h], []
            self.switch(h, unit)

    # ---- the switch ----

    def switch(self, h, unit):
        """A unit of a host has left it."""
        other = 1 - h
        word = content_of(unit[0])
        kind, opcode, node, name = (
            bits(unit[0], 10, 8),
            word & 15,
            bits(word, 4, 9),
            bits(word, 13, 8),
        )
        self.log[h].append((kind, opcode, name))
        if kind == NOTIFICATION:
            assert node == self.node(other)
            self.demands[h][0].append([name, bits(word, 21, 16)])
        elif kind == SINGLE and opcode == 0 and bits(word, 21, 4) == NULL:
            assert self.owed[h].popleft() == (node, name), "grants are answered in order"
            self.unused[h] += 1
        elif kind == SINGLE and opcode == 0:
            self.heard[h].append(node)
        elif kind == SINGLE:
            self.forward(other, [self.renamed(unit[0], self.node(h))])
        elif opcode in (RESPONSE, POSTED, ACKNOWLEDGED):
            self.answered(h, unit, opcode, node, name)
            self.forward(other, unit)
        else:
            assert node == self.node(other)
            length = bits(word, 21, 16) if opcode == READ else 8
            if length > CHUNK_BYTES:
                self.demands[other][1].append([name, length - CHUNK_BYTES])
            self.owed[other].append((self.node(h), name))
            self.forward(other, [self.renamed(unit[0], self.node(h)), *unit[1:]])

    def answered(self, h, unit, opcode, node, name):
        """A chunk answers the oldest grant."""
        owed_node, owed_name = self.owed[h].popleft()
        assert owed_node == self.node(1 - h)
        if opcode == ACKNOWLEDGED:
            header = unit[1] >> 2
            node, name = bits(header, 4, 9), bits(header, 13, 8)
        if opcode != POSTED:
            assert (node, name) == (self.node(h), owed_name)

    @staticmethod
    def renamed(word, node):
        """A first block with another node."""
        return word & ~(0x1FF << 22) | node << 22

    def forward(self, h, unit, ending=SOUND):
        """Puts a unit behind all that goes to a host."""
        if self.drop(h, bits(unit[0], 10, 8), unit):
            return
        last = len(unit) - 1
        for i, word in enumerate(unit):
            flags = 1 << 4 | int(i == 0) << 3 | int(i == last) << 2 | (ending if i == last else 0)
            self.down[h].append(flags << 66 | word)

    def grant(self, h, name, length, response):
        """Grants `length` bytes of a message to a host."""
        self.owed[h].append((self.node(1 - h), name))
        content = length << 21 | name << 13 | self.node(1 - h) << 4 | response
        self.forward(h, [block(GRANT, content)])

    def forget(self):
        """The links start anew: nothing of before is anywhere."""
        for h in (0, 1):
            self.down[h].clear()
            self.owed[h].clear()
            self.partial[h].clear()
            for queue in self.demands[h]:
                queue.clear()

    def schedule(self):
        """Grants in order, at random times."""
        for h in (0, 1):
            for response in (0, 1):
                queue = self.demands[h][response]
                if not queue or self.hold_grants or self.draws.random() >= self.grant_share:
                    continue
                demand = queue[0]
                length = min(CHUNK_BYTES, demand[1])
                self.grant(h, demand[0], length, response)
                demand[1] -= length
                if not demand[1]:
                    queue.popleft()

    # ---- receive clock: blocks, data for the caller, memory ----

    async def receive_clock(self):
        """Blocks in, data for the callers, memory."""
        dut, both = self.dut, (0, 1)
        while True:
            self.schedule()
            blocks = [self.down[h].popleft() if self.down[h] and self.chance() else 0 for h in both]
            accept = [int(self.take_reads and self.chance()) for _ in both]
            drives = [memory.drive() for memory in self.memories]
            answers = [memory.offers[0] for memory in self.memories]
            reads = [memory.offers[1] for memory in self.memories]
            dut.up_i.value = pack(self.up, 1)
            dut.memory_i.value = pack(blocks, 71)
            dut.read_ready_i.value = pack(accept, 1)
            for i, name in enumerate(("awready_i", "wready_i", "arready_i")):
                getattr(dut, name).value = pack([drive[i] for drive in drives], 1)
            dut.bvalid_i.value = pack([int(item is not None) for item in answers], 1)
            dut.bresp_i.value = pack(
                [self.memories[h].response(answers[h][1]) if answers[h] else 0 for h in both], 2
            )
            dut.rvalid_i.value = pack([int(item is not None) for item in reads], 1)
            dut.rdata_i.value = pack([item[1] if item else 0 for item in reads], 64)
            dut.rresp_i.value = pack([item[2] if item else 0 for item in reads], 2)
            await RisingEdge(dut.rx_clk_i)
            self.sample(accept, drives, answers, reads)
            await FallingEdge(dut.rx_clk_i)

    def sample(self, accept, drives, answers, reads):
        """What passed in this cycle."""
        dut = self.dut
        flags = {
            name: int(getattr(dut, name).value)
            for name in (
                "read_valid_o",
                "awvalid_o",
                "wvalid_o",
                "bready_o",
                "arvalid_o",
                "rready_o",
            )
        }
        aw, w, ar = ([drive[i] for drive in drives] for i in range(3))
        for name, valid, ready, parts in (
            ("read", "read_valid_o", accept, {"read_o": 89}),
            ("aw", "awvalid_o", aw, {"awaddr_o": 64, "awlen_o": 8}),
            ("w", "wvalid_o", w, {"wdata_o": 64, "wstrb_o": 8, "wlast_o": 1}),
            ("ar", "arvalid_o", ar, {"araddr_o": 64, "arlen_o": 8}),
        ):
            self.offers(name, flags[valid], ready, parts)
        for h, memory in enumerate(self.memories):
            if flags["read_valid_o"] >> h & 1 and accept[h]:
                self.deliver(h, int(dut.read_o.value) >> 89 * h)
            if flags["awvalid_o"] >> h & 1 and drives[h][0]:
                address = bits(int(dut.awaddr_o.value), 64 * h, 64)
                memory.write(address, bits(int(dut.awlen_o.value), 8 * h, 8) + 1)
            if flags["wvalid_o"] >> h & 1 and drives[h][1]:
                memory.beat(
                    bits(int(dut.wdata_o.value), 64 * h, 64),
                    bits(int(dut.wstrb_o.value), 8 * h, 8),
                    bits(int(dut.wlast_o.value), h, 1),
                )
            if answers[h] and flags["bready_o"] >> h & 1:
                memory.apply()
            if reads[h] and flags["rready_o"] >> h & 1:
                memory.reads.popleft()
            if flags["arvalid_o"] >> h & 1 and drives[h][2]:
                address = bits(int(dut.araddr_o.value), 64 * h, 64)
                memory.read(address, bits(int(dut.arlen_o.value), 8 * h, 8) + 1)
            memory.settle()
        dropped = int(dut.dropped_o.value)
        for h in (0, 1):
            self.lost[h] |= bits(dropped, 5 * h, 5)

    def offers(self, name, valid, ready, parts):
        """What hosts offer in their receive clock stays until it is taken."""
        values = [(int(getattr(self.dut, part).value), width) for part, width in parts.items()]
        for h in (0, 1):
            word = [bits(value, width * h, width) for value, width in values]
            self.stable[h][name].pass_edge(valid >> h & 1, ready[h], word)

    def deliver(self, h, word):
        """A word of a read came to its caller."""
        op = self.ops[h][bits(word, 73, 16)]
        if op.done == (0, LINK_DOWN):
            self.late[h] += 1
            return
        assert op.done is None, "data before its completion"
        keep, data = bits(word, 64, 8), bits(word, 0, 64)
        count = keep.bit_count()
        assert keep == (1 << count) - 1
        op.got += data.to_bytes(8, "little")[:count]
        if bits(word, 72, 1):
            assert len(op.got) == op.length

    async def finished(self, cycles_max):
        """Waits until every request has ended and nothing is under way."""
        for _ in range(cycles_max):
            await FallingEdge(self.dut.tx_clk_i)
            ended = all(op.done is not None for ops in self.ops for op in ops)
            if ended and not any(self.down) and not any(self.owed):
                break
        else:
            waiting = [
                (h, i, op) for h in (0, 1) for i, op in enumerate(self.ops[h]) if not op.done
            ]
            raise AssertionError(f"{len(waiting)} requests wait: {waiting[:3]} {self.owed}")
        for _ in range(400):
            await FallingEdge(self.dut.rx_clk_i)


async def clock_of(signal, period_ps, phase_ps):
    """A clock with a phase."""
    signal.value = 0
    if phase_ps:
        await Timer(phase_ps, unit="ps")
    Clock(signal, period_ps, unit="ps").start(start_high=False)


def expect(op, data):
    """What an operation gives and leaves, in the order of its pair."""
    span = slice(op.address, op.address + op.length)
    if op.is_write():
        data[span] = op.data
    else:
        op.expected = bytes(data[span])
        if op.opcode != READ:
            old = int.from_bytes(op.expected, "little")
            data[span] = modified(op, old).to_bytes(8, "little")


def random_op(draws, size, lengths=None):
    """Any operation on a small memory, so that operations meet."""
    length = draws.choice(lengths or [1, 3, 8, 8, 13, 64, 64, 64, 100, 256, 257, 700, 1024])
    opcode = draws.choice([READ, READ, POSTED, ACKNOWLEDGED, draws.randint(8, 13)])
    if opcode >= COMPARE_AND_SWAP:
        operands = (draws.getrandbits(64), draws.getrandbits(64))
        return Op(opcode, draws.randrange(0, size, 8), 8, operands=operands)
    address = draws.randrange(size - length)
    if draws.random() < 0.3:
        # At a boundary of bursts.
        address = min(size - length, max(0, 2048 * draws.randrange(size // 2048) - length // 2))
    data = draws.randbytes(length) if opcode != READ else b""
    return Op(opcode, address, length, data=data)
