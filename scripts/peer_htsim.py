"""NDP in htsim, the simulator of NDP's authors, beside our fabric `ndp`."""

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
    changed,
    digest,
    incasts,
    logged,
    poisson,
    write_trace,
)

ORIGIN = ("https://github.com/Broadcom/csg-htsim", "841d9e7b")
NODES, RACK, SPINES = 64, 8, 8
GBPS, LINK_NS = 100, 200
# A packet takes a link for 1,424 bytes of data and 88 of headers on both sides.
DATA_BYTES, HEADER_BYTES = 1424, 88
PACKET_PS = (DATA_BYTES + HEADER_BYTES) * 8 * 1000 // GBPS
# A round trip of 2.2 us and a queue of eight packets.
WINDOW = 26
LIMITS = [(1, 1), (2, 8), (9, 32), (33, 128), (129, 512)]
SIZES = [(0.6, 1, 1), (0.2, 2, 8), (0.12, 9, 32), (0.06, 33, 128), (0.02, 129, 512)]

# What is changed in its sources, by name.
EDITS = {
    "arrival": "the receiver prints `received FLOW at_ps TIME` once a flow is complete",
    "headers-of-88": "packets without data have 88 bytes, as a link's frames here",
    # Until July 2023, as in the simulator of the paper, a host sent control packets, then
    # retransmissions, then new data. Now it sends NACKs and retransmissions with new data.
    "priorities": "hosts send NACKs with control packets, retransmissions before new data",
    "nacks-with-data": "hosts send NACKs with new data",
    "retransmissions-with-data": "hosts send retransmissions with new data",
    "complete-messages-pull-nothing": "the packet that completes a message causes no pull",
    "pulls-at-line-rate": "no hundredth of a link is left idle between pulls",
}
ARRIVED = re.compile(r"^received (\d+) at_ps (\d+)$", re.M)
BASE = ("arrival", "headers-of-88", "priorities")
# Its queue counts the packet that is being sent; ours does not.
OPTIONS = {
    "-strat": "perm",
    "-host_queue_type": "fair_prio",
    "-q": "10",
    "-cwnd": str(WINDOW),
    "-mtu": str(DATA_BYTES),
    "-seed": "1",
}

NETWORK = LeafSpine(NODES, RACK, SPINES, GBPS, LINK_NS, DATA_BYTES + HEADER_BYTES - 38)
SCENARIO = NETWORK.scenario(
    "ndp",
    f"""\
header_bytes = {HEADER_BYTES - 38}
queue_packets = 8
header_queue_bytes = {20 * DATA_BYTES}
headers_per_data = 1000
window_packets_initial = {WINDOW}
rto_us = 50000
""",
)

TOPOLOGY = f"""\
Nodes {NODES}
Tiers 2
Podsize {NODES}

Tier 0
Downlink_speed_Gbps {GBPS}
Radix_Down {RACK}
Radix_Up {SPINES}
Downlink_Latency_ns {LINK_NS}
Switch_Latency_ns 0

Tier 1
Downlink_speed_Gbps {GBPS}
Radix_Down {NODES // RACK}
Downlink_Latency_ns {LINK_NS}
Switch_Latency_ns 0
"""


def by_arrival(name: str, edits: tuple[str, ...] = ()) -> Variant:
    """Return a variant whose hosts send data in the order of arrival on both sides."""
    keys, options = ("fabric.ndp.host_queue=arrival",), (("-host_queue_type", "prio"),)
    return Variant(name, keys=keys, options=options, edits=edits)


WITH_DATA = ("nacks-with-data", "retransmissions-with-data")
QUEUES = (
    Variant("base"),
    Variant("theirs: NACKs with data", edits=WITH_DATA[:1]),
    Variant("theirs: retransmissions with data", edits=WITH_DATA[1:]),
    Variant("theirs: both with data", edits=WITH_DATA),
    by_arrival("both: hosts in order of arrival"),
    by_arrival("the same, theirs: both with data", WITH_DATA),
)
VARIANTS = (
    *QUEUES,
    Variant("theirs: pulls at line rate", edits=("pulls-at-line-rate",)),
    Variant("theirs: no pull when complete", edits=("complete-messages-pull-nothing",)),
    Variant("theirs: paths at random", options=(("-strat", "rand"),)),
    Variant("theirs: another seed", options=(("-seed", "2"),)),
    Variant("ours: a queue of 7", keys=("fabric.ndp.queue_packets=7",)),
    Variant("ours: a queue of 9", keys=("fabric.ndp.queue_packets=9",)),
    Variant("ours: packets sprayed in turn", keys=("fabric.leaf_spine.balancing=spray",)),
    Variant("ours: another seed", keys=("run.seed=2",)),
    Variant("ours: the last always trimmed", keys=("fabric.ndp.trim_arriving_fraction=0",)),
)


def both(name: str, key: str, option: str, ours: int, theirs: int) -> Variant:
    """Return a variant that changes one thing on both sides."""
    return Variant(name, keys=(f"fabric.ndp.{key}={ours}",), options=((option, str(theirs)),))


QUEUE, FIRST = ("queue_packets", "-q"), ("window_packets_initial", "-cwnd")
TRIMS = (
    *QUEUES,
    both("both: queues of about 4", *QUEUE, 4, 6),
    both("both: queues of 29", *QUEUE, 29, 32),
    both("both: queues of 1,000", *QUEUE, 1000, 1063),
    both("both: a first window of 8", *FIRST, 8, 8),
    both("both: a first window of 1", *FIRST, 1, 1),
)
LOADS = (0.3, 0.45, 0.6)
CASES = [
    Case(
        "all-to-all, load 0.3",
        "ndp",
        "ndp-all-30",
        lambda: poisson(1, NODES, 10_000, 0.3, SIZES, PACKET_PS),
        VARIANTS,
    ),
    Case(
        "all-to-all, load 0.6",
        "ndp",
        "ndp-all-60",
        lambda: poisson(2, NODES, 10_000, 0.6, SIZES, PACKET_PS),
        VARIANTS,
    ),
    *(
        Case(
            f"all-to-all of 20 packets, load {load}",
            "ndp",
            f"ndp-20-{load}",
            lambda load=load: poisson(3, NODES, 3_000, load, [(1, 20, 20)], PACKET_PS),
            TRIMS if load == max(LOADS) else QUEUES,
        )
        for load in LOADS
    ),
    Case(
        "incast of 32, 20 packets each",
        "ndp",
        "ndp-incast-32",
        lambda: incasts(3, NODES, 32, 20, 20, 100_000_000),
        VARIANTS,
    ),
    Case(
        "incast of 63, a packet each",
        "ndp",
        "ndp-incast-63",
        lambda: incasts(4, NODES, 63, 1, 20, 50_000_000),
        VARIANTS,
    ),
]


def matrix(messages: list[Message]) -> str:
    """Return the messages as htsim's connection matrix."""
    rows = [
        f"{one.source}->{one.destination} id {number} start {one.at_ps}"
        f" size {one.packets * DATA_BYTES}"
        for number, one in enumerate(messages, 1)
    ]
    return "\n".join([f"Nodes {NODES}", f"Connections {len(rows)}", *rows, ""])


def read(log: str, messages: list[Message]) -> Times:
    """Return the times from what the edit `arrival` prints; the first line of a flow counts."""
    times = Times([None] * len(messages))
    for found in ARRIVED.finditer(log):
        place = int(found[1]) - 1
        if not 0 <= place < len(messages):
            raise WrongError(f"htsim printed {found[0]!r}; flows are 1 to {len(messages)}")
        if times.us[place] is None:
            times.us[place] = (int(found[2]) - messages[place].at_ps) / 1e6
    return times


def theirs(folder: Path, case: Case, variant: Variant, messages: list[Message], out: Path) -> Times:
    """Run htsim on the messages."""
    program = changed(folder, "htsim_ndp", (*BASE, *variant.edits), EDITS)
    options = OPTIONS | dict(variant.options)
    topology = out / "htsim.topo"
    topology.write_text(TOPOLOGY)
    text = matrix(messages)
    name = f"{case.trace}-{digest(text, TOPOLOGY, built(program), *options.items())}"
    flows = out / f"{name}.cm"
    flows.write_text(text)
    # The last message has half of its 50 ms timeout to end.
    end_us = messages[-1].at_ps // 1_000_000 + 20_000
    words: list[object] = [program, "-topo", topology, "-tm", flows, "-nodes", NODES]
    words += ["-end", end_us, "-o", out / f"{name}.dat"]
    words += [word for option in options.items() for word in option]
    return read(logged(words, out / f"{name}.log"), messages)


def trace(messages: list[Message], file: Path) -> None:
    """Write the messages for our side."""
    write_trace(messages, DATA_BYTES, file)


def scenario(_case: Case) -> str:
    """Return our scenario, without its trace."""
    return SCENARIO
