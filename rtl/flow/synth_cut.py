"""The logic of one port, and of one pair of ports, of a scheduler that has many.

A path begins and ends at registers, memories and pins, and all ports are the same. So what is in
front of those of one port and of one pair has the longest path of the whole, and can be mapped with
64 ports, where the whole could not.
"""

import itertools
import re

# Registers and memories of the one port, of the one pair in both ways, and of any.
KEPT = re.compile(r"\bgen_(ports\[0\]|sources\[0\]\.gen_pairs\[1\]|sources\[1\]\.gen_pairs\[0\])")
ARRAYS = re.compile(r"\bgen_(ports|sources|pairs)\[")
# Registers for all pairs in one, and those that there are once.
OF_PAIRS = re.compile(r"\b(source_least_o|destination_least_o|response_q)$")
ONCE = re.compile(r"\b(phase|turn|now|destination_limit|to_ahead(_two|_waits)?)_q$")
# What goes into a memory.
ENDS = {"$memrd": ["ADDR"], "$memwr": ["ADDR", "DATA", "EN"]}


def kept_bits(name, width, ports):
    """How many of the lowest bits of a register, a memory or a pin are of the one port or pair."""
    if ARRAYS.search(name):
        return width if KEPT.search(name) else 0
    if ONCE.search(name):
        return width
    if width % ports:
        raise ValueError(f"{name}: {width} bits are not the same for each of {ports} ports")
    # Of a port and itself there is nothing, but of one of two pairs.
    return 2 if OF_PAIRS.search(name) else width // ports


class Cut:
    """A module whose registers and memories become pins, of which those of one port are kept."""

    def __init__(self, library, module, ports):
        self.library, self.module, self.ports = library, module, ports
        self.numbers = itertools.count()

    def pin(self, width):
        """A new wire that is to be a pin."""
        name = self.library.IdString(f"\\cut_{next(self.numbers)}")
        return self.module.addWire(name, width)

    def end(self, signal):
        """What is in front of a register or a memory goes out."""
        wire = self.pin(signal.size())
        wire.port_output = True
        self.module.connect(self.library.SigSpec(wire), signal)

    def begin(self, signal):
        """What a register or a memory gives comes in."""
        wire = self.pin(signal.size())
        wire.port_input = True
        self.module.connect(signal, self.library.SigSpec(wire))

    def register(self, cell):
        """Cuts a register."""
        data, held = self.port(cell, "D"), self.port(cell, "Q")
        chunk = held.as_chunk()
        name, first, width = chunk.wire.name.str(), chunk.offset, chunk.wire.width
        kept = min(kept_bits(name, width, self.ports) - first, held.size())
        self.module.remove(cell)
        if kept > 0:
            self.end(data.extract(0, kept))
        self.begin(held)

    def memory(self, cell, ends):
        """Cuts a way into a memory, or out of it."""
        name = cell.parameters[self.library.IdString("\\MEMID")].decode_string()
        signals = [self.port(cell, end) for end in ends]
        read = self.port(cell, "DATA") if "DATA" not in ends else None
        # What has a place for each port, and no port that chooses among them, is registers.
        place = self.port(cell, "ADDR")
        mine = place.as_int() == 0 if place.is_fully_const() else kept_bits(name, 1, self.ports)
        self.module.remove(cell)
        if mine:
            for signal in signals:
                self.end(signal)
        if read is not None:
            self.begin(read)

    def port(self, cell, name):
        """What a cell is connected to."""
        return cell.getPort(self.library.IdString(f"\\{name}"))

    def all(self):
        """Cuts everywhere."""
        for cell in list(self.module.cells_.values()):
            kind = cell.type.str().removesuffix("_v2")
            if kind in ENDS:
                self.memory(cell, ENDS[kind])
            elif "dff" in kind:
                self.register(cell)
        self.outputs()
        self.module.fixup_ports()

    def outputs(self):
        """Of the pins that there were, those of one port stay."""
        for wire in list(self.module.wires_.values()):
            name = wire.name.str()
            if wire.port_output and not name.startswith("\\cut_"):
                wire.port_output = False
                kept = kept_bits(name, wire.width, self.ports)
                self.end(self.library.SigSpec(wire).extract(0, kept))
