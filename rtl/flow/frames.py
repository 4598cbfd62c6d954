"""Ethernet frames as the blocks of 64b/66b, as a switch stores and forwards them."""

CONTROL, DATA = 1, 2
IDLE = 0x1E << 2 | CONTROL
# By data octets before /T/.
TERMINATE = [0x87, 0x99, 0xAA, 0xB4, 0xCC, 0xD2, 0xE1, 0xFF]
PREAMBLE = bytes(6 * [0x55] + [0xD5])


def block(header, octets):
    """A block from its octets, the first one first on the line."""
    return int.from_bytes(octets, "little") << 2 | header


def blocks(frame, late=False):
    """A frame's blocks, /S/ to /T/; `late` starts it on lane 4."""
    octets = PREAMBLE + frame
    if late:
        first, octets = bytes([0x33, 0, 0, 0, 0]) + octets[:3], octets[3:]
    else:
        first, octets = bytes([0x78]) + octets[:7], octets[7:]
    made = [block(CONTROL, first)]
    while len(octets) >= 8:
        made.append(block(DATA, octets[:8]))
        octets = octets[8:]
    return [*made, block(CONTROL, bytes([TERMINATE[len(octets)]]) + octets.ljust(7, b"\0"))]


class Frames:
    """Puts frames together from blocks, and minds the gaps between them."""

    def __init__(self):
        self.whole, self.octets, self.gap, self.deficit = [], None, 12, 0

    def put(self, bits):
        """A block of the line, idles too."""
        octets = (bits >> 2).to_bytes(8, "little")
        if bits & 3 == CONTROL and octets[0] in (0x78, 0x33):
            late = octets[0] == 0x33
            assert self.octets is None, "a frame within a frame"
            # Gaps have 12 octets on average, and are never more than three behind.
            self.deficit = max(0, self.deficit + 12 - self.gap - 4 * late)
            assert self.deficit <= 3, f"a gap of {self.gap} octets"
            self.octets = octets[5:] if late else octets[1:]
        elif bits & 3 == CONTROL and octets[0] in TERMINATE:
            count = TERMINATE.index(octets[0])
            whole = self.octets + octets[1 : 1 + count]
            assert whole[:7] == PREAMBLE
            self.whole.append(whole[7:])
            self.octets, self.gap = None, 8 - count
        elif bits & 3 == DATA:
            self.octets += octets
        else:
            assert bits == IDLE and self.octets is None, "an idle in a frame"
            self.gap += 8
