#!/usr/bin/env python3
"""Measure `ethermem kv` beside redis-server with redis-benchmark: medians of paired runs.

    python3 scripts/bench_kv.py [--command target/release/ethermem] [--rounds 7] [--requests 500000]

With `--pool node` the keys are in the memory of an `ethermem node` that it starts. Both servers run
all the while; each round measures both, in alternating order. Besides requests per second, the
table shows the processor time of a server per million requests: on a shared machine, that is the
repeatable number.
"""

import argparse
import csv
import io
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

TESTS = ["SET", "GET"]
TOOLS = ["redis-server", "redis-benchmark"]
READY_LINES_MAX = 200


def free_port():
    """Return a port on which nothing listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@contextmanager
def started(command, ready):
    """Run a server; yield it once it has reported that it is ready."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        line = ""
        try:
            for _, line in zip(range(READY_LINES_MAX), process.stdout, strict=False):
                if re.search(ready, line):
                    break
            else:
                said = f": it says {line.strip()!r}" if line else ""
                sys.exit(f"error: {command[0]} does not start{said}")
            yield process
        finally:
            process.terminate()


def core_s(process):
    """Return the processor time that a process has used, user and system, in seconds."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(port, process, test, options):
    """Run one benchmark: requests per second, and processor seconds per million requests."""
    before = core_s(process)
    arguments = ["-p", port, "-t", test.lower(), "-n", options.requests, "-P", options.pipeline]
    arguments += ["-d", options.value_bytes, "-c", options.clients, "-r", options.keys, "--csv"]
    ended = subprocess.run(
        ["redis-benchmark", *map(str, arguments)], capture_output=True, text=True, check=True
    )
    (row,) = csv.DictReader(io.StringIO(ended.stdout))
    took = core_s(process) - before
    return float(row["rps"]), took / options.requests * 1e6


def summary(values):
    """Return the median, the minimum and the maximum."""
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def run(options):
    """Measure both alternately, and return the results."""
    ours, theirs = free_port(), free_port()
    pool, node = options.pool, None
    if pool == "node":
        address = f"127.0.0.1:{free_port()}"
        pool, node = f"udp://{address}", [options.command, "node", "--memory", "1GiB"]
        node += ["--listen", address, "--insecure"]
    kv = [options.command, "kv", "--pool", pool, "--index", options.index]
    kv += ["--listen", f"127.0.0.1:{ours}"]
    real = ["redis-server", "--port", str(theirs), "--save", "", "--appendonly", "no"]
    measured = {test: {"ethermem": [], "redis": []} for test in TESTS}
    with ExitStack() as stack:
        if node:
            stack.enter_context(started(node, "serving|listening|ready"))
        servers = {
            "ethermem": (ours, stack.enter_context(started(kv, "ready for clients"))),
            "redis": (theirs, stack.enter_context(started(real, "eady to accept"))),
        }
        for round_number in range(options.rounds + 1):
            order = list(servers.items())
            if round_number % 2 == 1:
                order.reverse()
            for test in TESTS:
                for name, (port, process) in order:
                    result = measure(port, process, test, options)
                    # The first round fills the tables.
                    if round_number > 0:
                        measured[test][name].append(result)
    return [row(test, measured[test]) for test in TESTS]


def row(test, measured):
    """Return the medians of one test, and of the ratios of each pair."""
    result = {"test": test}
    for name, values in measured.items():
        result[f"{name}_requests_per_s"] = summary([rate for rate, _ in values])
        result[f"{name}_core_s_per_million"] = summary([core for _, core in values])
    pairs = zip(measured["ethermem"], measured["redis"], strict=True)
    ratios = [(ours[0] / theirs[0], ours[1] / theirs[1]) for ours, theirs in pairs]
    result["rate_ratio"] = summary([rate for rate, _ in ratios])
    result["core_ratio"] = summary([core for _, core in ratios])
    return result


def table(rows):
    """Return the results as a Markdown table."""
    lines = [
        "| test | ethermem, requests/s | redis-server, requests/s | ratio | spread |"
        " core s per million: ethermem | redis-server |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        ours, theirs = row["ethermem_requests_per_s"], row["redis_requests_per_s"]
        cores = [row[f"{name}_core_s_per_million"]["median"] for name in ("ethermem", "redis")]
        ratio = row["rate_ratio"]
        cells = [
            row["test"],
            f"{ours['median']:,.0f}",
            f"{theirs['median']:,.0f}",
            f"{ratio['median']:.2f}",
            f"{ratio['least']:.2f} to {ratio['most']:.2f}",
            *(f"{core:.2f}" for core in cores),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main():
    """Read the arguments, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", default="target/release/ethermem")
    parser.add_argument("--pool", default="local:", help="a URL, or `node`")
    parser.add_argument("--index", default="client", choices=["client", "node"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=500_000)
    parser.add_argument("--pipeline", type=int, default=16)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--value-bytes", type=int, default=64)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--format", choices=["table", "json"], default="table")
    options = parser.parse_args()
    missing = [name for name in [*TOOLS, options.command] if shutil.which(name) is None]
    if missing:
        print(
            f"error: not found: {', '.join(missing)}; redis is in Debian's redis-server and "
            "redis-tools, the command is made by `make build`",
            file=sys.stderr,
        )
        return 2
    rows = run(options)
    print(json.dumps(rows, indent=2) if options.format == "json" else table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
