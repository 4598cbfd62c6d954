"""The programs: each returns what it measured, and an answer that must be the same everywhere."""

import csv
import json
import random
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from .places import HERE, Place

LIMIT_S = 60
GRACE_S = 10
RANKS = 2
# What iperf3 sends for its answer.
FIXED_BYTES = 32 << 20
# A cluster's nodes talk on ports that are so much higher.
BUS = 10_000
PORTS = range(20_000, 40_000)


@dataclass
class Options:
    """What the command line asks for."""

    quick: bool
    python: str
    folder: Path


@dataclass
class Result:
    """An answer, and values by what was measured; the unit is part of the name."""

    answer: str
    values: dict[str, float]


def free_ports(count: int) -> list[int]:
    """Return ports on which nothing listens, also not on those of a cluster's bus."""
    found: list[int] = []
    while len(found) < count:
        port = random.choice(PORTS)
        with socket.socket() as some, socket.socket() as bus, suppress(OSError):
            some.bind(("127.0.0.1", port))
            bus.bind(("127.0.0.1", port + BUS))
            found.append(port)
    return found


def run(words: list[str]) -> str:
    """Run a program to its end; return what it printed."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


@contextmanager
def server(words: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server meanwhile; what it prints goes to a file."""
    with log.open("wb") as out:
        process = subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def until(text: str, log: Path) -> None:
    """Wait until a server has printed `text`."""
    end = time.monotonic() + GRACE_S
    while not (log.exists() and re.search(text, log.read_text(errors="replace"))):
        if time.monotonic() > end:
            raise SystemExit(f"a server did not start:\n{log.read_text(errors='replace')}")
        time.sleep(0.02)


def iperf3(place: Place, options: Options) -> Result:
    """Measure streams. iperf3 compares no content: its answer is the bytes of a fixed transfer."""
    seconds = "1" if options.quick else "2"
    kinds = {
        "1 stream, Gb/s": ["-t", seconds],
        "4 streams, Gb/s": ["-t", seconds, "-P", "4"],
        "reverse, sendfile, Gb/s": ["-t", seconds, "-R", "-Z"],
        "both ways, Gb/s": ["-t", seconds, "--bidir"],
        "fixed": ["-n", str(FIXED_BYTES)],
    }
    if options.quick:
        kinds = {name: kinds[name] for name in ("reverse, sendfile, Gb/s", "fixed")}
    values, answer = {}, ""
    for number, (name, words) in enumerate(kinds.items()):
        (port,) = free_ports(1)
        log = options.folder / f"iperf3-{place.name}-{number}"
        log.unlink(missing_ok=True)
        to = ["-p", str(port)]
        serve = ["iperf3", "-s", "-1", "-B", place.hosts[1], *to, "--forceflush"]
        with server(place.words(1, *serve), log) as process:
            until("Server listening", log)
            said = run(place.words(0, "iperf3", "-c", place.hosts[1], *to, "-J", *words))
            process.wait(GRACE_S)
        end = json.loads(said)["end"]
        if name == "fixed":
            # It may send a block more than it was asked for.
            answer = f"{min(end['sum_sent']['bytes'], FIXED_BYTES)} B sent"
        else:
            sums = [end[key] for key in end if key.startswith("sum_received")]
            values[name] = sum(one["bits_per_second"] for one in sums) / 1e9
    return Result(answer, values)


def redis(place: Place, options: Options) -> Result:
    """Load a cluster of three, then check every value of another client."""
    ports = free_ports(3)
    # The first is beside the load generator, where there are two nodes.
    hosts = [place.hosts[number % 2] for number in range(3)]
    names = [f"{host}:{port}" for host, port in zip(hosts, ports, strict=True)]
    requests = "2000" if options.quick else "50000"
    with ExitStack() as stack:
        for number, (host, port) in enumerate(zip(hosts, ports, strict=True)):
            folder = options.folder / f"redis-{place.name}-{port}"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            words = ["redis-server", "--port", str(port), "--bind", host, "--save", ""]
            words += ["--cluster-enabled", "yes", "--dir", str(folder), "--appendonly", "no"]
            # Its addresses are private to this run.
            words += ["--protected-mode", "no"]
            log = folder / "log"
            stack.enter_context(server(place.words(number % 2, *words), log))
            until("eady to accept", log)
        made = run(place.words(0, "redis-cli", "--cluster", "create", *names, "--cluster-yes"))
        if "All 16384 slots covered" not in made:
            raise SystemExit(f"redis-cli made no cluster:\n{made}")
        wait_for_cluster(place, hosts, ports)
        values = {}
        load = ["redis-benchmark", "--cluster", "-h", hosts[0], "-p", str(ports[0]), "--csv"]
        load += ["-r", "10000", "-c", "20"]
        for size, count in ((64, int(requests)), (16384, int(requests) // 5)):
            words = [*load, "-t", "set,get", "-n", str(count), "-d", str(size)]
            for row in csv.reader(run(place.words(0, *words)).splitlines()):
                if row and row[0] in ("SET", "GET"):
                    values[f"{row[0]} {size} B, requests/s"] = float(row[1])
                    values[f"{row[0]} {size} B, mean ms"] = float(row[2])
                    values[f"{row[0]} {size} B, p99 ms"] = float(row[6])
        if not values:
            raise SystemExit("redis-benchmark printed no row")
        keys = "200" if options.quick else "2000"
        client = [sys.executable, str(HERE / "cluster.py"), keys, names[0]]
        return Result(run(place.words(0, *client)).strip(), values)


def wait_for_cluster(place: Place, hosts: list[str], ports: list[int]) -> None:
    """Wait until every node knows that all slots are served."""
    end = time.monotonic() + GRACE_S
    for host, port in zip(hosts, ports, strict=True):
        ask = ["redis-cli", "-h", host, "-p", str(port), "cluster", "info"]
        while "cluster_state:ok" not in run([*place.prefixes[0], *ask]):
            if time.monotonic() > end:
                raise SystemExit("the cluster does not form")
            time.sleep(0.05)


def mpirun(place: Place, *words: str) -> str:
    """Run an MPI program of one rank a node.

    Each node has a daemon of its own, and both would bind their ranks to the first processor. Ranks
    that wait let others run: the kernel's part of the network needs a processor, too.
    """
    start = ["mpirun", "--allow-run-as-root", "-n", str(RANKS), "--bind-to", "none"]
    start += ["--mca", "mpi_yield_when_idle", "1", *place.mpi]
    return run(place.words(0, *start, *words))


def collectives(place: Place, options: Options) -> Result:
    """Measure collectives of Open MPI; the sums of what they gave are the answer."""
    program = options.folder / "collectives"
    if not program.exists():
        run(["mpicc", "-O2", str(HERE / "collectives.c"), "-o", str(program)])
    calls, sizes = ("20", ["64", "65536"]) if options.quick else ("500", ["64", "16384", "1048576"])
    rows = [line.split() for line in mpirun(place, str(program), calls, *sizes).splitlines()]
    values = {f"{kind} {size} B, us": float(us) for kind, size, us, _ in rows}
    return Result(" ".join(row[3] for row in rows), values)


def training(place: Place, options: Options) -> Result:
    """Train with 11 M gradients on two ranks."""
    steps, parameters = ("2", "1000000") if options.quick else ("8", "11000000")
    script = str(HERE / "train.py")
    said = mpirun(place, options.python, script, steps, parameters).split()
    step, exchange, digest = said
    values = {"step, ms": float(step), "exchange of a step, ms": float(exchange)}
    return Result(digest, values)


def words(place: Place, options: Options) -> Result:
    """Count words by map and reduce on two workers."""
    (port,) = free_ports(1)
    folder = options.folder
    dask = [options.python, "-m", "dask"]
    at = f"tcp://{place.hosts[0]}:{port}"
    with ExitStack() as stack:
        log = folder / f"dask-{place.name}"
        log.unlink(missing_ok=True)
        start = [*dask, "scheduler", "--host", place.hosts[0], "--port", str(port)]
        start += ["--no-dashboard", "--no-jupyter"]
        stack.enter_context(server(place.words(0, *start), log))
        until("Scheduler at", log)
        for node, host in enumerate(place.hosts):
            worker = [*dask, "worker", at, "--host", host, "--nthreads", "1", "--no-nanny"]
            worker += ["--no-dashboard", "--name", f"worker-{node}", "--local-directory"]
            worker += [str(folder / f"worker-{node}")]
            stack.enter_context(server(place.words(node, *worker), folder / f"worker-{node}.log"))
        sizes = ("4", "200000") if options.quick else ("8", "1000000")
        script = str(HERE / "words.py")
        took, count, digest = run(place.words(0, options.python, script, at, *sizes)).split()
    return Result(f"{count} words, {digest}", {"count, s": float(took)})


# What each program needs, and where Debian or PyPI have it.
PROGRAMS = {
    "iperf3": (iperf3, ["iperf3"], [], "Debian's iperf3"),
    "redis": (redis, ["redis-server", "redis-cli", "redis-benchmark"], [], "Debian's redis"),
    "collectives": (collectives, ["mpirun", "mpicc"], [], "Debian's libopenmpi-dev, openmpi-bin"),
    "training": (training, ["mpirun"], ["numpy", "mpi4py"], "openmpi-bin; PyPI's numpy, mpi4py"),
    "words": (words, [], ["distributed"], "PyPI's dask and distributed"),
}


def missing(name: str, python: str) -> str:
    """Return what a program lacks on this machine, or nothing."""
    _, commands, modules, source = PROGRAMS[name]
    lacks = [command for command in commands if shutil.which(command) is None]
    for module in modules:
        test = [python, "-c", f"import {module}"]
        if subprocess.run(test, check=False, capture_output=True).returncode != 0:
            lacks.append(f"{python} has no {module}")
    return f"{', '.join(lacks)}: {source}" if lacks else ""
