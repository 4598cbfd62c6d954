#!/usr/bin/env python3
"""Measure programs that nobody of this project wrote, on kernel sockets and in a rack.

    python3 scripts/bench_rack_programs.py [--command target/release/ethermem] [--rounds 5]

Each round runs each program in every place: on loopback; on two nodes with one NIC each, by TCP,
and with several NICs each, by MPTCP (network namespaces, veth, `tc tbf`: root); and in a rack. The
order turns from round to round. The answers of all runs must be the same. What is not installed is
named, and not measured.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
from contextlib import ExitStack
from pathlib import Path

from rack_programs import places
from rack_programs.programs import PROGRAMS, Options, missing

PLACES = {
    "loopback": "TCP, loopback",
    "nic": "TCP, one NIC",
    "mptcp": "MPTCP, all NICs",
    "rack": "rack",
}
# From here on, values are shown as whole numbers.
WHOLE = 1000
ANSWER_MAX = 60


def measure(options: argparse.Namespace, stack: ExitStack) -> tuple[dict, list[str]]:
    """Run everything; return the values by program and place, and what was not measured."""
    folder = stack.enter_context(places.workspace())
    where = {"loopback": places.Place("loopback"), "rack": places.rack(options.command, folder)}
    lacks = []
    if {"nic", "mptcp"} & set(options.places):
        if os.geteuid() == 0 and shutil.which("tc"):
            made = stack.enter_context(places.nodes(options.nics, options.mbit, folder))
            where.update({place.name: place for place in made})
        else:
            lacks.append("nic, mptcp: network namespaces need root, and Debian's iproute2")
    chosen = [where[name] for name in options.places if name in where]
    results: dict[str, dict] = {}
    for name in options.programs:
        if lack := missing(name, options.python):
            lacks.append(f"{name}: {lack}")
            continue
        results[name] = rounds(name, chosen, options, folder)
    for place in chosen:
        if place.name == "mptcp" and places.mptcp_connections(place) == 0:
            sys.exit("mptcp: the kernel has accepted no connection by MPTCP")
    return results, lacks


def rounds(name: str, chosen: list, options: argparse.Namespace, folder: Path) -> dict:
    """Run one program in all places, in an order that turns."""
    act = PROGRAMS[name][0]
    own = Options(options.quick, options.python, folder)
    result: dict = {"answer": None, "values": {}, "rack": {}}
    for number in range(options.rounds):
        turn = number % len(chosen)
        for place in chosen[turn:] + chosen[:turn]:
            print(f"{name}, round {number + 1}, {place.name}", file=sys.stderr, flush=True)
            got = act(place, own)
            if result["answer"] is None:
                result["answer"] = got.answer
            if got.answer != result["answer"] or "DIFFER" in got.answer:
                sys.exit(f"{name} on {place.name}: {got.answer}, elsewhere {result['answer']}")
            for measured, value in got.values.items():
                by_place = result["values"].setdefault(measured, {})
                by_place.setdefault(place.name, []).append(value)
            if place.command:
                accounts = place.reports()
                if accounts["memory_bytes"] == 0 or accounts["faults"] + accounts["stranded_bytes"]:
                    sys.exit(f"{name} in a rack: {accounts}")
                for key, value in accounts.items():
                    result["rack"][key] = result["rack"].get(key, 0) + value
    return result


def cell(values: list[float]) -> str:
    """Return the median, the least and the most."""
    if not values:
        return "-"
    middle = statistics.median(values)
    digits = 0 if middle >= WHOLE else 2
    shown = [f"{value:,.{digits}f}" for value in (middle, min(values), max(values))]
    return f"{shown[0]} ({shown[1]} to {shown[2]})"


def table(results: dict, used: list[str]) -> str:
    """Return the results as a Markdown table."""
    others = [name for name in used if name != "rack"]
    heads = ["program", "measure", *(PLACES[name] for name in used)]
    heads += [f"rack over {PLACES[name]}" for name in others if "rack" in used]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, result in results.items():
        for measured, values in result["values"].items():
            cells = [name, measured, *(cell(values.get(place, [])) for place in used)]
            for place in others if "rack" in used else []:
                pairs = zip(values.get("rack", []), values.get(place, []), strict=False)
                ratios = [ours / theirs for ours, theirs in pairs if theirs]
                cells.append(f"{statistics.median(ratios):.2f}" if ratios else "-")
            lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        "| program | answer, the same in all runs | share of bytes by memory in the rack |",
    ]
    lines.append("|---|---|---|")
    for name, result in results.items():
        accounts = result["rack"]
        both = accounts.get("memory_bytes", 0) + accounts.get("kernel_bytes", 0)
        share = f"{accounts['memory_bytes'] / both:.0%}" if both else "-"
        answer = result["answer"][:ANSWER_MAX]
        lines.append(f"| {name} | {answer} | {share} |")
    return "\n".join(lines)


def main() -> int:
    """Read the arguments, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--command", default="target/release/ethermem")
    parser.add_argument("--python", default=sys.executable, help="has numpy, mpi4py and dask")
    parser.add_argument("--programs", nargs="+", choices=list(PROGRAMS), default=list(PROGRAMS))
    parser.add_argument("--places", nargs="+", choices=list(PLACES), default=list(PLACES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mbit", type=int, default=1000, help="rate of each NIC")
    parser.add_argument("--nics", type=int, default=4, help="NICs of a node, for MPTCP")
    parser.add_argument("--quick", action="store_true", help="small sizes: a check of the answers")
    parser.add_argument("--json", type=Path, help="where to write all values and answers")
    options = parser.parse_args()
    if "rack" in options.places and shutil.which(options.command) is None:
        print(f"error: {options.command} is not there: `make build`", file=sys.stderr)
        return 2
    with ExitStack() as stack:
        results, lacks = measure(options, stack)
    print(table(results, options.places))
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))
    for lack in lacks:
        print(f"NOT MEASURED: {lack}", file=sys.stderr)
    return 0 if results else 2


if __name__ == "__main__":
    sys.exit(main())
