#!/usr/bin/env python3
"""Run a public simulator and our fabric on the same messages, and compare completion times.

    python3 scripts/peer_simulators.py htsim --ethermem target/release/ethermem
    python3 scripts/peer_simulators.py dcpim --ethermem target/release/ethermem --only phost
    python3 scripts/peer_simulators.py homa --ethermem target/release/ethermem --simulator PROGRAM

It takes htsim and dcPIM's simulator from GitHub, at one commit, and builds them with g++ in a copy
of their sources. Homa's simulator must be built before. Both sides have the same topology, rates,
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

from edm_artifact import WrongError, source
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
        help="a checkout of the peer's repository; of homa, the program, which it needs",
    )
    parser.add_argument("--url", help="another place of that repository to clone from")
    parser.add_argument("--out", type=Path, default=Path("out/peers"))
    parser.add_argument("--only", default="", help="traces whose fabric and name contain this")
    parser.add_argument("--base", action="store_true", help="without the variants")
    return parser.parse_args()


def simulator(peer: ModuleType, asked: argparse.Namespace, out: Path) -> Path:
    """Return the peer's checkout, or its program if the peer's module does not build it."""
    if not hasattr(peer, "PROGRAM"):
        url, commit = peer.ORIGIN
        return source(asked.simulator, (asked.url or url, commit), out / "simulator")
    if asked.simulator is None or not asked.simulator.is_file():
        raise WrongError(f"--simulator {asked.simulator}: must be {peer.PROGRAM}")
    return asked.simulator.resolve()


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
    checkout = simulator(peer, asked, out)
    for name, case in chosen.items():
        messages = case.messages()
        file = out / f"{case.trace}.csv"
        peer.trace(messages, file)
        rows = []
        for variant in case.variants[: 1 if asked.base else None]:
            own = ours(asked.ethermem, peer.scenario(case), file, case.fabric, variant.keys, out)
            their = peer.theirs(checkout, case, variant, messages, out)
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
