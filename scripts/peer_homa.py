"""Homa in ns-3, an implementation in guidance of Homa's authors, beside our fabric `homa`.

This module does not build the simulator: `--simulator` is the program of peer_homa.cc, linked with
the ns-3 of https://github.com/serhatarslan-hub/HomaL4Protocol-ns-3, commit 3cac7119.
"""

import re
from pathlib import Path

from edm_artifact import WrongError
from peer_runs import (
    Case,
    LeafSpine,
    Message,
    Times,
    Variant,
    built,
    digest,
    incasts,
    logged,
    poisson,
    write_trace,
)

PROGRAM = "the program of scripts/peer_homa.cc and the ns-3 of HomaL4Protocol-ns-3"
NODES, RACK, SPINES = 144, 16, 4
LINK_NS = 250
# RTTbytes in packets, as in its reproduction of Homa's paper.
WINDOW = 7
QUEUE_PACKETS = 500
RESEND_US = 1000
# IPv4 and 20 bytes of Homa, on both sides.
HEADER_BYTES = 40
GBPS = 10
# A full packet takes so many bytes of a link on both sides: 38 are Ethernet's with preamble and gap
# here, 2 are PPP's there, and the rest is data.
LINE_BYTES = 1504
OURS_BYTES = LINE_BYTES - 38 - HEADER_BYTES
THEIRS_BYTES = LINE_BYTES - 2 - HEADER_BYTES
PACKET_PS = LINE_BYTES * 8 * 1000 // GBPS
LIMITS = [(1, 1), (2, 7), (8, 40), (41, 300), (301, 1500)]
SIZES = [(0.5, 1, 1), (0.25, 2, 7), (0.1, 8, 40), (0.1, 41, 300), (0.05, 301, 1500)]
OPTIONS = {
    "nodes": str(NODES),
    "rack": str(RACK),
    "spines": str(SPINES),
    "gbps": str(GBPS),
    "spine-gbps": str(GBPS * RACK // SPINES),
    "mtu": str(THEIRS_BYTES + HEADER_BYTES),
    "link-ns": str(LINK_NS),
    "window": str(WINDOW),
    "priorities": "8",
    "unscheduled": "2",
    "overcommitment": "6",
    "queue": str(QUEUE_PACKETS),
    "resend-us": str(RESEND_US),
    "run": "1",
    "device-priorities": "false",
}
RECEIVED = re.compile(r"^received (\d+) at_ps (\d+)$", re.M)

# As it is, its switches have one priority.
PRIORITIES = (("device-priorities", "true"),)
VARIANTS = (
    Variant("base"),
    Variant("ours: one priority", keys=("fabric.homa.priorities=1",)),
    Variant("theirs: switches have priorities", options=PRIORITIES),
    Variant(
        "theirs: this; both: one scheduled priority",
        keys=("fabric.homa.priorities=3",),
        options=(*PRIORITIES, ("priorities", "3")),
    ),
)
LOADS = (0.5, 0.8)
CASES = [
    *(
        Case(
            f"all-to-all, load {load}",
            "homa",
            f"homa-all-{load}",
            lambda load=load: poisson(11, NODES, 10_000, load, SIZES, PACKET_PS),
            VARIANTS,
        )
        for load in LOADS
    ),
    Case(
        "incast of 32, 20 packets each",
        "homa",
        "homa-incast-32",
        lambda: incasts(12, NODES, 32, 20, 20, 2_000_000_000),
        VARIANTS[:3],
    ),
    Case(
        "incast of 63, a packet each",
        "homa",
        "homa-incast-63",
        lambda: incasts(13, NODES, 63, 1, 20, 500_000_000),
        VARIANTS[:3],
    ),
]


def scenario(_case: Case) -> str:
    """Return our scenario, without its trace."""
    network = LeafSpine(NODES, RACK, SPINES, GBPS, LINK_NS, OURS_BYTES + HEADER_BYTES)
    return network.scenario(
        "homa",
        f"""\
header_bytes = {HEADER_BYTES}
buffer_bytes = {QUEUE_PACKETS * LINE_BYTES}
priorities = {OPTIONS["priorities"]}
unscheduled_priorities = {OPTIONS["unscheduled"]}
unscheduled_bytes = {WINDOW * OURS_BYTES}
overcommitment = {OPTIONS["overcommitment"]}
resend_us = {RESEND_US}
""",
    )


def lines(messages: list[Message]) -> str:
    """Return the messages as peer_homa.cc reads them."""
    return "".join(
        f"{one.at_ps} {one.source} {one.destination} {one.packets * THEIRS_BYTES}\n"
        for one in messages
    )


def read(log: str, messages: list[Message]) -> Times:
    """Return the times from what peer_homa.cc prints; the first line of a message counts."""
    times = Times([None] * len(messages))
    for found in RECEIVED.finditer(log):
        place = int(found[1])
        if place >= len(messages):
            raise WrongError(
                f"it printed {found[0]!r}; messages are numbered 0 to {len(messages) - 1}"
            )
        if times.us[place] is None:
            times.us[place] = (int(found[2]) - messages[place].at_ps) / 1e6
    return times


def theirs(
    program: Path, case: Case, variant: Variant, messages: list[Message], out: Path
) -> Times:
    """Run the simulator on the messages."""
    # The last message has half a second to end.
    end = {"end-us": str(messages[-1].at_ps // 1_000_000 + 500_000)}
    options = OPTIONS | end | dict(variant.options)
    text = lines(messages)
    name = f"{case.trace}-{digest(text, built(program), *options.items())}"
    file = out / f"{name}.messages"
    file.write_text(text)
    words = [f"--{key}={value}" for key, value in options.items()]
    log = logged([program, f"--trace={file}", *words], out / f"{name}.log")
    return read(log, messages)


def trace(messages: list[Message], file: Path) -> None:
    """Write the messages for our side."""
    write_trace(messages, OURS_BYTES, file)
