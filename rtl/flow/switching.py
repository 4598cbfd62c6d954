"""Blocks in and out of the switch, and traces of the Rust model's switch to compare with."""

import csv
import os
import subprocess

from flow import replay, tools

EXAMPLE = "switch_trace"
# Widths of the structs of em_link_pkg.
RX_BITS, TX_BITS = 71, 69
POLICIES = {"fcfs": 0, "srpt-published": 1, "srpt": 2}


def rx_memory(payload, header, first, last, ending):
    """A block of a message, as em_link_pkg::rx_memory_t."""
    flags = 1 << 4 | first << 3 | last << 2 | ending
    return flags << 66 | payload << 2 | header


def control(sub_type, content):
    """The payload of an EDM control block, with its CRC-8."""
    crc = 0xFF
    for bit in range(48):
        feedback = (crc ^ (content << 8 | sub_type) >> bit) & 1
        crc = crc >> 1 ^ (0xEC if feedback else 0)
    return crc << 56 | content << 16 | sub_type << 8


def single(payload):
    """A message of one block, as it is received."""
    return rx_memory(payload, 1, 1, 1, 0)


def framed(payloads):
    """A message of several blocks, as it is received: control at its ends, data between."""
    last = len(payloads) - 1
    return [
        rx_memory(payload, 1 if at in (0, last) else 2, at == 0, at == last, 0)
        for at, payload in enumerate(payloads)
    ]


def tx_memory(bits, port):
    """What a port shows, of a packed array of em_link_pkg::tx_memory_t: block, framed, last."""
    shown = bits >> TX_BITS * port & (1 << TX_BITS) - 1
    if not shown >> 68:
        return None
    return shown & (1 << 66) - 1, bool(shown >> 67 & 1), bool(shown >> 66 & 1)


def trace(ports, policy, slots, failures, seed, path):
    """Writes what the model does. A mutant of rtl/ has its model elsewhere."""
    cargo = replay.model(EXAMPLE)
    root = os.environ.get("MODEL_ROOT", tools.ROOT)
    wanted = f"{ports} {policy} {slots} {int(failures)} {seed}\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as out:
        subprocess.run(cargo, cwd=root, input=wanted, stdout=out, text=True, check=True)


def rows(path):
    """The rows of a trace, by slot: what goes in, what comes out, which ports go up or down."""
    slots = {}
    with path.open(encoding="utf-8", newline="") as lines:
        for row in csv.reader(lines):
            if row[0].startswith("#"):
                continue
            slot, event, port = int(row[0]), row[1], int(row[2])
            first, last, ending, header = (int(word or 0) for word in row[3:7])
            payload = int(row[7] or "0", 16)
            here = slots.setdefault(slot, {"in": {}, "out": {}, "up": {}})
            if event == "in":
                here["in"][port] = rx_memory(payload, header, first, last, ending)
            elif event == "out":
                here["out"][port] = payload << 2 | header
            else:
                here["up"][port] = event == "up"
    return slots
