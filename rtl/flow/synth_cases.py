"""What `make synth` measures: each module on generic gates, and what N makes large for all."""

import math

from flow import sources
from flow.tools import RTL

# Ports in the parameters of what grows with them; the rest is measured as its defaults are.
GROWS = {
    "em_arb_prio": ("Requests", {}),
    "em_arb_rr": ("Requests", {}),
    "em_min_tree": ("Inputs", {"KeyWidth": 67}),
    "em_ordered_list": ("Groups", {"KeyWidth": 16, "IdWidth": 16}),
    "em_sched_hold": ("Ports", {}),
    "em_sched_matcher": ("Ports", {}),
    "em_size_class_least": ("Inputs", {}),
    "em_size_class_first": ("Inputs", {}),
    "em_size_class_choice": ("Ports", {}),
    "em_precedence_choice": ("Ports", {}),
    "em_size_class_mutual_least": ("Ports", {}),
    "em_size_class_matcher": ("Ports", {}),
    "em_size_class_message_bank": ("Ports", {}),
    "em_size_class_port_ends": ("Ports", {}),
    "em_size_class_scheduler": ("Ports", {}),
    "em_scheduler": ("Ports", {}),
    "em_switch_memory": ("Ports", {}),
    "em_switch": ("Ports", {}),
    "em_switch_top": ("Ports", {}),
}
# On gates these are of many ports, which few are only fitted for: as they are with many.
MANY = ["em_size_class_mutual_least", "em_size_class_matcher", "em_size_class_scheduler"]
GATES = ["quick", "cut", "small"]
PORTS = [2, 4, 8]
# What has a whole switch in it, and so an exact scheduler: more ports do not end.
FEWER = {"em_switch_memory": [2], "em_switch": [2], "em_switch_top": [2]}
# Parts go further than the whole does.
FURTHER = {
    "em_arb_prio": [16, 32, 64],
    "em_arb_rr": [16, 32, 64],
    "em_min_tree": [16, 32, 64],
    "em_ordered_list": [16, 32, 64],
    "em_sched_hold": [16],
    "em_size_class_least": [16, 32, 64],
    "em_size_class_first": [16, 32, 64],
    "em_size_class_choice": [16, 32],
    "em_precedence_choice": [16],
    "em_size_class_mutual_least": [16, 32],
    "em_size_class_matcher": [16, 32],
    "em_size_class_message_bank": [16, 32, 64],
    "em_sched_matcher": [16, 32],
}
# Of these, what of a scheduler is between registers of it, with eight ports on an FPGA.
PARTS = [
    "em_ordered_list",
    "em_size_class_message_bank",
    "em_size_class_mutual_least",
    "em_size_class_matcher",
    "em_size_class_port_ends",
]
# From so many ports on, a synthesis takes minutes, or more than there are.
LONG_FROM = {
    "em_size_class_scheduler": 8,
    "em_ordered_list": 64,
    "em_sched_hold": 16,
    "em_sched_matcher": 32,
    "em_scheduler": 4,
}
# But on these targets the largest ends.
LARGEST = {"em_size_class_scheduler": ["quick", "xcup"]}
# ABC ends with an assertion of its own over this one's sums of two bits where they are carry
# chains ("Boxes are not in a topological order", pyosys 0.70): its sums are LUTs.
FLAGS = {("em_l2_egress", "xcup"): " -nocarry"}
SCHEDULERS = ["em_scheduler", "em_size_class_scheduler"]
# Of these, how long the longest path is with more ports than can be mapped.
CUT = {"em_scheduler": [4, 8], "em_size_class_scheduler": [4, 8, 16, 32, 64]}


def parameters(top, target, ports):
    """The parameters of a module for so many ports."""
    name, others = GROWS[top]
    chosen = {name: ports, **others}
    if top in MANY and target in GATES:
        chosen["ByOrder"] = 0
    if top == "em_ordered_list":
        # X places for each source.
        chosen["Depth"] = 3 * ports
    return chosen


def job(top, target, ports=None):
    """One synthesis."""
    chosen = parameters(top, target, ports) if ports else {}
    asked = {"top": top, "target": target, "ports": ports, "parameters": chosen}
    flags = FLAGS.get((top, target))
    return asked | ({"flags": flags} if flags else {})


def takes_long(case):
    """Whether a synthesis may take more time than there is for one."""
    ends = case["target"] == "cut" or case["target"] in LARGEST.get(case["top"], [])
    long_from = math.inf if ends else LONG_FROM.get(case["top"], math.inf)
    return case["ports"] is not None and case["ports"] >= long_from


def all_jobs():
    """Every synthesis, in the order of what is asked first of it.

    What grows comes first, the smaller before the larger; then every module by itself on every
    target; then what says the same of a module as another target; and behind all of them what may
    not end.
    """
    grown = [
        (top, ports) for top in GROWS for ports in [*FEWER.get(top, PORTS), *FURTHER.get(top, [])]
    ]
    grown.sort(key=lambda case: (case[0] in SCHEDULERS, case[1]))
    # Neither what is around a module in its test nor what is around one in its proof.
    rest = [
        top
        for top, path in sorted(sources.files().items())
        if top not in GROWS
        and not any(path.is_relative_to(RTL / folder) for folder in ("tb", "formal"))
    ]
    wholes = [
        job(top, target, n) for n in PORTS for target in ("xcup", "ecp5") for top in SCHEDULERS
    ]
    jobs = [
        *(job(top, "quick", ports) for top, ports in grown),
        *(job(top, "cut", ports) for top, counts in CUT.items() for ports in counts),
        *(job(top, target) for target in ("quick", "xcup") for top in rest),
        *wholes,
        *(job(top, "ecp5", 8) for top in PARTS),
        *(job(top, target) for target in ("ecp5", "small") for top in rest),
        *(job(top, "small", ports) for top, ports in grown),
    ]
    # In order otherwise.
    return sorted(jobs, key=takes_long)
