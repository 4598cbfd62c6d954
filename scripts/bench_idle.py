#!/usr/bin/env python3
"""Measure the processor time of a memory node and of a client that have nothing to do.

    python3 scripts/bench_idle.py [--command target/release/ethermem] [--seconds 20] [--rounds 3]

The client is `ethermem kv` on that node, once a key was set and read. The kernel's account of every
thread (`schedstat`) is read before and after. Values are percent of a processor.
"""

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path

from bench_kv import free_port, started
from swap_programs.command import BenchError, Parser, markdown, spread, whole

NS_PER_S = 1_000_000_000
# The target of each.
PERCENT_MAX = 0.1


def used_ns(process: int) -> int:
    """Return the processor time of a process's threads."""
    tasks = Path(f"/proc/{process}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


def percent(ns: int, seconds: float) -> float:
    """Return a processor time as percent of a processor."""
    return 100 * ns / (seconds * NS_PER_S)


def measure(options: argparse.Namespace) -> dict[str, list[float]]:
    """Return the percent of each round, by who was idle."""
    address, port = f"127.0.0.1:{free_port()}", str(free_port())
    node = [options.command, "node", "--memory", "64MiB", "--listen", address, "--insecure"]
    client = [options.command, "kv", "--pool", f"udp://{address}", "--listen", f"127.0.0.1:{port}"]
    with started(node, "serving") as node_process, started(client, "ready for") as client_process:
        for words in (["set", "key", "value"], ["get", "key"]):
            command = ["redis-cli", "-p", port, *words]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        processes = {"memory node": node_process.pid, "client": client_process.pid}
        found: dict[str, list[float]] = {name: [] for name in processes}
        for _ in range(options.rounds):
            # A second after the last request both are idle.
            time.sleep(1)
            began, before = time.monotonic(), {of: used_ns(of) for of in processes.values()}
            time.sleep(options.seconds)
            took = time.monotonic() - began
            for name, of in processes.items():
                found[name].append(percent(used_ns(of) - before[of], took))
        return found


def main() -> int:
    """Measure, and print the table."""
    parser = Parser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--command", default="target/release/ethermem")
    parser.add_argument("--seconds", type=whole(1, 3600), default=20)
    parser.add_argument("--rounds", type=whole(1, 100), default=3)
    options = parser.parse_args()
    missing = [name for name in (options.command, "redis-cli") if shutil.which(name) is None]
    if missing:
        raise BenchError(f"{missing[0]} is not there")
    rows = [[name, spread(found, 3), f"{PERCENT_MAX}"] for name, found in measure(options).items()]
    print(markdown(["idle", "percent of a processor", "asked, below"], rows))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
