#!/usr/bin/env python3
"""Run a public simulator and our fabric on the same messages, and compare completion times.

    python3 scripts/peer_simulators.py htsim --ethermem target/release/ethermem --simulator FOLDER
    python3 scripts/peer_simulators.py dcpim ... --simulator FOLDER --only phost
    python3 scripts/peer_simulators.py homa ... --simulator PROGRAM

The simulators are built before: of htsim and dcPIM's, --simulator is a folder of programs that are
named by their changes; of Homa's, it is the program. Both sides have the same topology, rates,
latencies, packets, buffers and messages. A table per trace has completion times by size class;
ratios are ours over theirs, and (!) is more than 10 % off. Variants change one thing on one side. A
finished run of the peer is kept in --out.
"""

import argparse
import fcntl
import importlib
import sys
from pathlib import Path
from types import ModuleType

from edm_artifact import WrongError
from peer_runs import HEAD, Case, classes, compared, ours, table

PEERS = ["htsim", "dcpim", "homa"]


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "peer", choices=PEERS, help="htsim: NDP; dcpim: dcPIM, pHost and pFabric; homa: Homa"
    )
    parser.add_argument("--ethermem", type=Path, required=True, help="the program that runs ours")
    parser.add_argument(
        "--simulator",
        type=Path,
        required=True,
        help="the folder of the peer's programs; of homa, the program",
    )
    parser.add_argument("--out", type=Path, default=Path("out/peers"))
    parser.add_argument("--only", default="", help="traces whose fabric and name contain this")
    parser.add_argument("--base", action="store_true", help="without the variants")
    return parser.parse_args()


def simulator(peer: ModuleType, given: Path) -> Path:
    """Return the peer's program, or the folder of its programs, as its module needs."""
    program = getattr(peer, "PROGRAM", None)
    if program and not given.is_file():
        raise WrongError(f"--simulator {given}: must be {program}")
    if not program and not given.is_dir():
        url, commit = peer.ORIGIN
        raise WrongError(f"--simulator {given}: must be a folder of programs of {url} at {commit}")
    return given.resolve()


def main() -> None:
    """Run what was asked for, and print a table per trace."""
    asked = arguments()
    peer = importlib.import_module(f"peer_{asked.peer}")
    cases = {f"{case.fabric}: {case.name}": case for case in peer.CASES}
    chosen = {name: case for name, case in cases.items() if asked.only in name}
    if not chosen:
        raise WrongError(f"--only {asked.only!r}: no trace has it; " + "; ".join(cases))
    if not asked.ethermem.is_file():
        raise WrongError(f"--ethermem {asked.ethermem}: there is no such program")
    out = asked.out.resolve() / asked.peer
    out.mkdir(parents=True, exist_ok=True)
    with (out / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise WrongError(f"--out {asked.out}: another run of this script uses it") from None
        compare(asked, peer, chosen, out)


def compare(
    asked: argparse.Namespace, peer: ModuleType, chosen: dict[str, Case], out: Path
) -> None:
    """Run both sides of each trace, in this folder."""
    simulated = simulator(peer, asked.simulator)
    for name, case in chosen.items():
        messages = case.messages()
        file = out / f"{case.trace}.csv"
        peer.trace(messages, file)
        rows = []
        for variant in case.variants[: 1 if asked.base else None]:
            their = peer.theirs(simulated, case, variant, messages, out)
            own = ours(asked.ethermem, peer.scenario(case), file, case.fabric, variant.keys, out)
            groups = classes(messages, peer.LIMITS)
            if variant is case.variants[0]:
                shown = [[group, *compared(their, own, at)] for group, at in groups.items()]
                print(f"{name}\n\n{table(HEAD, shown)}\n", flush=True)
            else:
                rows += [
                    [variant.name, group, *compared(their, own, at)] for group, at in groups.items()
                ]
        if rows:
            print(f"{table(['changed', *HEAD], rows)}\n", flush=True)


if __name__ == "__main__":
    try:
        main()
    except WrongError as wrong:
        print(f"error: {wrong}", file=sys.stderr)
        sys.exit(2)
