#!/usr/bin/env python3
"""Measure pools as a swap device, beside a file in memory, and what a fault costs in software.

    python3 scripts/bench_swap_device.py [--command target/release/ethermem] [--rounds 3]

Table 5 of the OSDI'16 study: pages of 4 KiB in batches that wait for the last, as long requests of
adjacent pages, and asynchronously (crates/bench/benches/swap_device.rs); `dd` with direct reads of
a file in tmpfs; and faults of a program that touches pages in random order with a quarter local,
under `ethermem run` and on the kernel's swap, one page at a fault, beside reads of the same device
without faults. All of it takes turns in each round. Root; what is made is removed.
"""

import argparse
import csv
import json
import mmap
import os
import random
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench_kv import free_port, started
from swap_programs import command, kernel
from swap_programs.command import BenchError, folder, markdown, spread, whole

ROOT = Path(__file__).resolve().parent.parent
TOUCHES = ROOT / "scripts" / "swap_programs" / "touches.py"
DEVICE = "cargo bench --quiet --locked -p ethermem-bench --bench swap_device --"
MIB = 1 << 20
PAGE = mmap.PAGESIZE
MEMORY_BYTES = 64 * MIB
SWAP_BYTES = 2 * MEMORY_BYTES
# A page at a fault, as the logarithm.
CLUSTER = 0
TMPFS = Path("/dev/shm")
TMPFS_FILE_BYTES = 256 * MIB
TMPFS_BLOCKS = [PAGE, 32 * PAGE]
RAW_READS = 20_000
SEED = 7
NAMES = {"udp": "udp://", "ring": "ring://", "local": "local:", "sim": "sim:edm"}


def output(words: list[str], timeout_s: float) -> str:
    """Run a command that must succeed, and return what it printed."""
    try:
        ended = subprocess.run(
            words, capture_output=True, text=True, check=False, cwd=ROOT, timeout=timeout_s
        )
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"{shlex.join(words[:4])} took over {timeout_s:.0f} s") from error
    if ended.returncode != 0:
        said = ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"]
        raise BenchError(f"{shlex.join(words[:4])}: {said[-1]}")
    return ended.stdout


def device(options: argparse.Namespace, urls: dict[str, str]) -> list[dict]:
    """Return a round of reads of every pool, in each way."""
    words = [*shlex.split(options.device), "--rounds", str(options.turns)]
    words += ["--pages", str(options.pages)]
    printed = output([*words, *urls.values()], options.timeout_s)
    names = {url: NAMES[kind] for kind, url in urls.items()}
    lines = csv.DictReader(printed.splitlines(), delimiter="\t")
    return [
        {
            "where": names[line["pool"]],
            "way": line["way"],
            "under_way": int(line["under_way"]),
            **{key: float(line[key]) for key in ("gb_per_s", "p50_us", "p99_us")},
        }
        for line in lines
    ]


@contextmanager
def tmpfs_file() -> Iterator[Path]:
    """Write a file in tmpfs, and remove it after the block."""
    with tempfile.NamedTemporaryFile(dir=TMPFS, prefix="ethermem-bench-") as file:
        for _ in range(TMPFS_FILE_BYTES // MIB):
            file.write(os.urandom(MIB))
        file.flush()
        yield Path(file.name)


def dd(path: Path, timeout_s: float) -> list[dict]:
    """Read a file by dd, directly, in blocks of each length."""
    rates = []
    for block in TMPFS_BLOCKS:
        words = ["dd", f"if={path}", "of=/dev/null", f"bs={block}", "iflag=direct"]
        began = time.monotonic()
        output(words, timeout_s)
        rate = TMPFS_FILE_BYTES / (time.monotonic() - began) / 1e9
        rates.append({"where": "tmpfs", "way": "dd", "under_way": block // PAGE, "gb_per_s": rate})
    return rates


def touched(words: list[str], touches: int, timeout_s: float) -> dict:
    """Run the program that touches pages; its sum must be right."""
    program = [sys.executable, str(TOUCHES), str(MEMORY_BYTES // PAGE), str(touches)]
    printed = output([*words, *program], timeout_s)
    said = dict(re.findall(r"(\w+)=(\S+)", printed))
    if said.get("sum") is None or said["sum"] != said["expected"]:
        raise BenchError(f"the pages that were touched say {printed.strip()!r}")
    counts = {"faults": int(said["faults"]), "slow": int(said["slow"])}
    return counts | {"p10_us": float(said["p10_us"]), "p50_us": float(said["p50_us"])}


def raw_us(path: Path) -> float:
    """Return the median time of reading a random page of a device or a file, directly."""
    source = random.Random(SEED)
    page = mmap.mmap(-1, PAGE)
    file = os.open(path, os.O_RDWR | os.O_DIRECT)
    try:
        for at in range(0, MEMORY_BYTES, PAGE):
            page[:] = source.randbytes(PAGE // 2) + bytes(PAGE // 2)
            os.pwritev(file, [page], at)
        times_ns = []
        for _ in range(RAW_READS):
            at = source.randrange(MEMORY_BYTES // PAGE) * PAGE
            began = time.perf_counter_ns()
            os.preadv(file, [page], at)
            times_ns.append(time.perf_counter_ns() - began)
        return statistics.median(times_ns) / 1e3
    finally:
        os.close(file)


def on_kernel(path: Path, limit: int, options: argparse.Namespace) -> dict:
    """Return the faults on the kernel's swap in this device or file, and its reads alone."""
    transfer_us = raw_us(path)
    with kernel.swap_on(path, CLUSTER), kernel.group() as group, group.kept_alive(limit):
        found = touched(group.under(), options.touches, options.timeout_s)
    return found | {"transfer_us": transfer_us}


def on_zram(limit: int, options: argparse.Namespace) -> dict:
    """Return the faults on zram."""
    with kernel.zram_device(SWAP_BYTES) as path:
        return on_kernel(path, limit, options)


def on_file(limit: int, options: argparse.Namespace) -> dict:
    """Return the faults on a swap file."""
    with kernel.whole_file(options.swap_folder, SWAP_BYTES) as path:
        return on_kernel(path, limit, options)


def on_pool(options: argparse.Namespace, local: int, pool: str) -> dict:
    """Return the faults under the pager, and the reads of its pool one at a time."""
    micro = [options.command, "bench", "micro", "--pool", pool, "--bytes", str(PAGE)]
    alone = json.loads(output([*micro, "--format", "json"], options.timeout_s))
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        words = [options.command, "run", "--pool", pool, "--local", f"{local // MIB}MiB"]
        words += ["--no-prefetch", "--report", report.name, "--"]
        found = touched(words, options.touches, options.timeout_s)
        pages = json.load(report)["pages"]
    taking_us = pages["taking_ns"] / 1e3 / max(pages["taken_pages"], 1)
    return found | {"transfer_us": alone["p50_ns"] / 1e3, "taking_us": taking_us}


def places(
    options: argparse.Namespace, most: kernel.Peak, urls: dict[str, str]
) -> dict[str, Callable[[], dict]]:
    """Return how the program that touches pages is run in each place."""
    local = most.private // 4 // MIB * MIB
    limit = local + most.beside
    return {
        "zram": lambda: on_zram(limit, options),
        "swap file": lambda: on_file(limit, options),
        "`ethermem run`, pool in this machine": lambda: on_pool(options, local, urls["local"]),
        "`ethermem run`, pool at a memory node": lambda: on_pool(options, local, urls["udp"]),
    }


def peak(options: argparse.Namespace) -> kernel.Peak:
    """Return what the program that touches pages holds at most."""
    with kernel.group() as group:
        with group.peak() as found:
            touched(group.under(), options.touches, options.timeout_s)
        return found[0]


def measure(options: argparse.Namespace) -> dict:
    """Return the values of every round."""
    port, ring = free_port(), free_port()
    node = [options.command, "node", "--memory", "512MiB", "--insecure"]
    node += ["--listen", f"127.0.0.1:{port}", "--ring", f"lo:{ring}"]
    urls = {"local": "local:", "udp": f"udp://127.0.0.1:{port}", "ring": f"ring://lo:{ring}"}
    loads: list[float] = []
    reads: list[dict] = []
    faults: dict[str, list[dict]] = {}
    with ExitStack() as stack:
        stack.enter_context(started(node, "serving"))
        path = stack.enter_context(tmpfs_file())
        acts = places(options, peak(options), urls)
        names = list(acts)
        for number in range(options.rounds):
            loads.append(os.getloadavg()[0])
            reads += device(options, {**urls, "sim": "sim:edm?nodes=2"})
            reads += dd(path, options.timeout_s)
            turn = number % len(names)
            for name in names[turn:] + names[:turn]:
                found = acts[name]()
                print(f"round {number + 1}, {name}: {found}", file=sys.stderr, flush=True)
                faults.setdefault(name, []).append(found)
    return {"loads": loads, "reads": reads, "faults": faults}


def table_of_reads(reads: list[dict]) -> str:
    """Return throughput and latency by pool and way."""
    groups: dict[tuple, list[dict]] = {}
    for read in reads:
        groups.setdefault((read["where"], read["way"], read["under_way"]), []).append(read)
    rows = []
    for (where, way, under_way), values in groups.items():
        cells = [where, way, str(under_way), spread([value["gb_per_s"] for value in values])]
        for key in ("p50_us", "p99_us"):
            known = [value[key] for value in values if key in value]
            cells.append(spread(known, 1) if known else "-")
        rows.append(cells)
    heads = ["where", "way", "pages", "GB/s", "latency p50, us", "latency p99, us"]
    return markdown(heads, rows)


def table_of_faults(faults: dict[str, list[dict]]) -> str:
    """Return a fault's median: in all, of the transfer alone, and the rest, which is software."""
    rows = []
    for name, values in faults.items():
        every = [found["p50_us"] for found in values]
        transfer = [found["transfer_us"] for found in values]
        software = [one - other for one, other in zip(every, transfer, strict=True)]
        count = statistics.median(found["slow"] for found in values)
        quick = spread([found["p10_us"] for found in values])
        takes = [found["taking_us"] for found in values if "taking_us" in found]
        cells = [name, f"{count:,.0f}", spread(every), quick, spread(transfer), spread(software)]
        rows.append([*cells, spread(takes) if takes else "-"])
    heads = ["where", "faults", "a fault, p50, us", "p10, us", "transfer alone, p50, us"]
    return markdown([*heads, "software, us", "a page taken out, mean, us"], rows)


def arguments(words: list[str]) -> argparse.Namespace:
    """Parse the arguments."""
    parser = command.Parser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--command", default="target/release/ethermem")
    parser.add_argument("--device", default=DEVICE, help="the bench that reads pools")
    parser.add_argument("--rounds", type=whole(1, 100), default=3)
    parser.add_argument("--turns", type=whole(1, 1000), default=10, help="of each way, in a round")
    parser.add_argument("--pages", type=whole(1, 100_000_000), default=4_000, help="of a turn")
    parser.add_argument("--touches", type=whole(1, 10_000_000), default=50_000)
    parser.add_argument("--timeout-s", type=whole(1, 36_000), default=600, help="of each run")
    parser.add_argument("--swap-folder", type=folder, help="on the disk to swap to: out")
    parser.add_argument("--json", type=Path, help="where to write all values")
    options = parser.parse_args(words)
    if options.swap_folder is None:
        options.swap_folder = ROOT / "out"
        options.swap_folder.mkdir(exist_ok=True)
    return options


def main(words: list[str]) -> int:
    """Read the arguments, measure, print."""
    options = arguments(words)
    # What was made is removed, also when the bench is ended from outside.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        if lack := kernel.lacks():
            raise BenchError(lack)
        found = shutil.which(options.command)
        if found is None:
            raise BenchError(f"{options.command} is not there: `make build`")
        options.command = str(Path(found).absolute())
        results = measure(options)
        if options.json:
            options.json.write_text(json.dumps(results, indent=2))
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except (BenchError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"load of the machine: {spread(results['loads'], 1)}\n")
    print(f"{table_of_reads(results['reads'])}\n\n{table_of_faults(results['faults'])}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
