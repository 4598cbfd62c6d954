"""dcPIM, pHost and pFabric in the simulator of dcPIM's authors, beside our fabrics."""

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

ORIGIN = ("https://github.com/Terabit-Ethernet/dcPIM", "2abda17d")
NODES, RACK = 144, 16
GBPS = 100
# A packet takes 1,500 bytes of a link there, and 1,504 here, where blocks have 8.
DATA_BYTES, PACKET_PS = 1422, 120_000
LIMITS = [(1, 1), (2, 7), (8, 49), (50, 343), (344, 2000)]
# Near the sizes of its CDF_imc10.txt.
SIZES = [(0.55, 1, 1), (0.25, 2, 7), (0.02, 8, 49), (0.09, 50, 343), (0.09, 344, 2000)]

# What is changed in its sources, by name.
EDITS = {
    # Today's g++ makes endless loops of functions that return nothing.
    "void": "the two functions `record`, which return nothing, are declared so",
    "free-tokens-last": "a free token does not expire; ours last",
    # With `hdr_size: 88`, packets without data take as much of a link as ours, and full ones 1,500.
    "data-of-1412": "a full packet has 1,412 bytes of data",
}
BASE = ("void",)

# Its parameters for the paper's default setup: py/load_100Gbps/load.py.
COMMON = {
    "bandwidth": "100000000000.0",
    "queue_type": "2",
    "use_flow_trace": "1",
    "cut_through": "0",
    "load_balancing": "0",
    "preemptive_queue": "0",
    "big_switch": "0",
    "mean_flow_size": "0",
    "traffic_imbalance": "0",
    "load": "0.6",
    "reauth_limit": "3",
    "magic_trans_slack": "1.1",
    "magic_delay_scheduling": "1",
    "smooth_cdf": "1",
    "burst_at_beginning": "0",
    "ddc": "0",
    "deadline": "0",
    "schedule_by_deadline": "0",
    "magic_inflate": "1",
    "interarrival_cdf": "none",
    "num_host_types": "13",
    # It samples queues forever otherwise.
    "debug_queue": "0",
}
CAPABILITY = {
    "capability_timeout": "1.5",
    "capability_third_level": "1",
    "capability_fourth_level": "0",
    "capability_prio_thresh": "0",
}
PARAMETERS = {
    "dcpim": {
        "init_cwnd": "2",
        "max_cwnd": "6",
        "retx_timeout": "9.50003e-06",
        "queue_size": "500000",
        "propagation_delay": "0.00000065",
        "flow_type": "116",
        "host_type": "17",
        "pim_iter_limit": "4",
        "pim_beta": "1.3",
        "pim_alpha": "1",
        "pim_k": "4",
        "token_initial": "1",
        "token_timeout": "8",
        "token_resend_timeout": "1",
        "token_window": "1",
        "token_window_timeout": "1.1",
        "pim_select_min_iters": "1",
    },
    "phost": {
        "init_cwnd": "2",
        "max_cwnd": "6",
        "retx_timeout": "9.50003e-06",
        "queue_size": "500000",
        "propagation_delay": "0.00000065",
        "flow_type": "112",
        "host_type": "12",
        "capability_resend_timeout": "51",
        "capability_initial": "49",
        "capability_window": "49",
        "capability_window_timeout": "151",
        **CAPABILITY,
    },
    "pfabric": {
        "init_cwnd": "19",
        "max_cwnd": "22",
        "retx_timeout": "1.54e-05",
        "queue_size": "36864",
        "propagation_delay": "0.0000002",
        "flow_type": "2",
        "host_type": "1",
    },
}
KEYS = {
    "dcpim": """\
skew_ns = 0
short_packets = 49
window_packets = 49
resend_us = 5.88
window_timeout_us = 6.468
""",
    "phost": """\
buffer_bytes = 500000
free_packets = 49
short_packets = 0
tokens_unused_max = 49
downgrade_packets = 151
downgrade_ends_with_data = false
timeout_us = 6.12
""",
    "pfabric": """\
buffer_bytes = 36864
window_packets_initial = 19
window_packets_max = 22
rto_us = 15.4
""",
}
LINK_NS = {"dcpim": 650, "phost": 650, "pfabric": 200}

# Flow, bytes, source, destination, start, end, time, time of the flow alone, and packets.
FINISHED = re.compile(r"^(\d+) \d+ \d+ \d+ [\d.]+ [\d.]+ ([\d.]+) [\d.]+ [\d.]+ \d+/", re.M)

VARIANTS: dict[str, tuple[Variant, ...]] = {
    "dcpim": (Variant("base"),),
    "phost": (
        Variant("base"),
        Variant("ours: 50 tokens unused", keys=("fabric.phost.tokens_unused_max=50",)),
        Variant("ours: 52 tokens unused", keys=("fabric.phost.tokens_unused_max=52",)),
        Variant("theirs: 48 tokens unused", options=(("capability_window", "48"),)),
        Variant("theirs: free tokens last", edits=("free-tokens-last",)),
        Variant(
            "theirs: 88 bytes without data", options=(("hdr_size", "88"),), edits=("data-of-1412",)
        ),
        Variant(
            "theirs: these two",
            options=(("hdr_size", "88"),),
            edits=("data-of-1412", "free-tokens-last"),
        ),
    ),
    "pfabric": (Variant("base"),),
}
CASES = [
    case
    for fabric, variants in VARIANTS.items()
    for case in (
        Case(
            "all-to-all, load 0.6",
            fabric,
            "dcpim-all-60",
            lambda: poisson(8, NODES, 20_000, 0.6, SIZES, PACKET_PS),
            variants,
        ),
        Case(
            "incast of 32, 100 packets each",
            fabric,
            "dcpim-incast-32",
            lambda: incasts(9, NODES, 32, 100, 20, 600_000_000),
            variants,
        ),
    )
]


def scenario(case: Case) -> str:
    """Return our scenario, without its trace."""
    network = LeafSpine(NODES, RACK, 4, GBPS, LINK_NS[case.fabric], 1462, "spray")
    return network.scenario(case.fabric, KEYS[case.fabric])


def flows(messages: list[Message]) -> str:
    """Return the messages as its flow trace, which begins at one second."""
    rows = [
        f"{number} {1 + one.at_ps * 1e-12:.12f} 0 0 {one.packets} 0 0"
        f" {one.source} {one.destination}"
        for number, one in enumerate(messages)
    ]
    return "\n".join([*rows, ""])


def acknowledgement_us(message: Message, link_ns: int) -> float:
    """Return the time of an acknowledgement of 40 bytes, with which a flow ends there."""
    host = 2 * (link_ns + 40 * 8 / GBPS)
    far = message.source // RACK != message.destination // RACK
    return (host + far * 2 * (link_ns + 40 * 8 / (4 * GBPS))) / 1000


def read(log: str, messages: list[Message], link_ns: int) -> Times:
    """Return the times from its lines of finished flows, without the acknowledgement."""
    times = Times([None] * len(messages))
    for found in FINISHED.finditer(log):
        place = int(found[1])
        if place >= len(messages):
            raise WrongError(f"it printed flow {place}; flows are 0 to {len(messages) - 1}")
        times.us[place] = float(found[2]) - acknowledgement_us(messages[place], link_ns)
    return times


def theirs(folder: Path, case: Case, variant: Variant, messages: list[Message], out: Path) -> Times:
    """Run its simulator on the messages."""
    program = changed(folder, "simulator", (*BASE, *variant.edits), EDITS)
    parameters = COMMON | PARAMETERS[case.fabric] | dict(variant.options)
    text = flows(messages)
    name = f"{case.trace}-{case.fabric}-{digest(text, built(program), *parameters.items())}"
    trace_file, conf = out / f"{name}.flows", out / f"{name}.conf"
    trace_file.write_text(text)
    parameters |= {"num_flow": str(len(messages)), "flow_trace": str(trace_file)}
    conf.write_text("".join(f"{key}: {value}\n" for key, value in parameters.items()))
    log = logged([program, 1, conf], out / f"{name}.log")
    return read(log, messages, LINK_NS[case.fabric])


def trace(messages: list[Message], file: Path) -> None:
    """Write the messages for our side."""
    write_trace(messages, DATA_BYTES, file)
