#!/usr/bin/env python3
"""Measure a graph engine with a quarter of its memory local: on pools, on disk swap and on zram.

    python3 scripts/bench_graph.py [--command target/release/ethermem] [--scales 16,17] [--rounds 3]

PageRank and connected components by NetworKit, with one thread, on R-MAT graphs of 2^scale vertices
and 16 edges each: figure 9 of the OSDI'16 study. In an order that turns, each round runs the engine
with all memory local; by `ethermem run` and a pool, in this program's memory and at a memory node;
by `ethermem emulate` with a network's delays; and in a memory cgroup with swap in a file and in
zram. Every answer is compared to that of a run without a limit. Root; what is made is removed.
"""

import argparse
import importlib.util
import json
import math
import os
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from bench_kv import free_port, started
from swap_programs import command, kernel
from swap_programs.command import BenchError, folder, markdown, whole

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "workloads"))
from apps import data  # noqa: E402
from apps.app import made_once  # noqa: E402

ENGINE = ROOT / "scripts" / "swap_programs" / "engine.py"
PARTS = ["load", "pagerank", "components"]
LOCAL = "all local"
POOL, NODE = "pool in this machine", "pool at a memory node"
NETWORKS = {"pool, 5 us, 40 Gb/s": (5, 40), "pool, 3 us, 100 Gb/s": (3, 100)}
ZRAM, FILE, SERVER = "zram", "swap file", "swap file, a quarter more local"
# The local memory of the study's server-centric scenario, over the other's.
SERVER_MORE = 1.25
# The logarithm of the pages that the kernel reads at a fault; its default.
CLUSTER = 3
MIB = 1 << 20
# Swap is this many times the peak.
SWAP_TIMES = 2
# The pager's least limit; the kernel's is below that.
LIMIT_LEAST = 16 * MIB
SCALES = range(10, 23)
OUT_OF_MEMORY = "out of memory"
# What Python, C++ and the loader say where memory is refused.
REFUSED = r"\[Errno 12\]|Cannot allocate memory|MemoryError|bad_alloc"
# Runs of a place in a round until memory is not refused.
TRIES = 3


def run(words: list[str], timeout_s: float, answer: str | None) -> dict | str:
    """Run the engine; return what it printed, or why there is nothing."""
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        ended = subprocess.run(
            words,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
            env={**os.environ, **threads},
        )
    except subprocess.TimeoutExpired:
        return f"over {timeout_s:.0f}"
    if ended.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL):
        return "killed"
    # The kernel's first version of cgroups refuses memory now and then although swap has room.
    if ended.returncode != 0 and re.search(REFUSED, ended.stderr):
        return OUT_OF_MEMORY
    if ended.returncode != 0:
        said = ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"]
        raise BenchError(f"{shlex.join(words[:4])}: {said[-1]}")
    return checked(ended.stdout, answer)


def checked(printed: str, answer: str | None) -> dict:
    """Parse the engine's line; its answer must be the one that is known."""
    said = dict(re.findall(r"(\w+)=(\S+)", printed))
    try:
        found = {"answer": said["answer"], "edges": int(said["edges"])}
        found |= {part: float(said[part]) for part in PARTS}
    except (KeyError, ValueError) as error:
        raise BenchError(f"the engine printed {printed.strip()!r}, not its times") from error
    if answer not in (None, found["answer"]):
        raise BenchError(f"the answer is {found['answer']}; all local it was {answer}")
    return found | {"whole": sum(found[part] for part in PARTS)}


def graph(scale: int) -> Path:
    """Give the engine's file of the R-MAT graph of 2^scale vertices."""

    def make(path: Path) -> None:
        words = [sys.executable, ENGINE, "make", data.graph(scale), str(scale), path]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)

    return made_once(f"graph-{scale}-{data.EDITION}.nkb", make)


def on_kernel(
    swap: Callable[[], AbstractContextManager], limit: int, act: Callable[[list[str]], dict | str]
) -> dict | str:
    """Run the engine in a cgroup of this limit, on this swap."""
    with swap(), kernel.group() as group, group.kept_alive(limit):
        return act(group.under())


def places(
    options: argparse.Namespace, words: list[str], most: kernel.Peak, url: str, answer: str
) -> dict[str, Callable[[], dict | str]]:
    """Return how the engine is run in each place."""

    def act(under: list[str]) -> dict | str:
        return run([*under, *words], options.timeout_s, answer)

    local = local_bytes(most.private, options.local)
    size = ["--local", f"{local // MIB}MiB"]
    pager = [options.command, "run", *size]
    emulate = [options.command, "emulate", "--once", *size]
    swap_bytes = most.private * SWAP_TIMES // MIB * MIB
    file = partial(kernel.swap_file, options.swap_folder, swap_bytes, CLUSTER)
    zram = partial(kernel.zram, swap_bytes, CLUSTER)
    networks = {
        name: partial(act, [*emulate, "--latency-us", str(us), "--bandwidth-gbps", str(gbps), "--"])
        for name, (us, gbps) in NETWORKS.items()
    }
    return {
        LOCAL: partial(act, []),
        POOL: partial(act, [*pager, "--"]),
        NODE: partial(act, [*pager, "--pool", url, "--"]),
        **networks,
        ZRAM: partial(on_kernel, zram, local + most.beside, act),
        FILE: partial(on_kernel, file, local + most.beside, act),
        SERVER: partial(on_kernel, file, int(local * SERVER_MORE) + most.beside, act),
    }


def local_bytes(private: int, percent: int) -> int:
    """Return a share of the peak, in whole mebibytes."""
    return max(private * percent // 100 // MIB * MIB, LIMIT_LEAST)


def peak(words: list[str], timeout_s: float) -> tuple[kernel.Peak, str]:
    """Return what the engine holds at most where nothing limits it, and its answer."""
    with kernel.group() as group:
        with group.peak() as found:
            said = run([*group.under(), *words], timeout_s, None)
        if isinstance(said, str):
            raise BenchError(f"all local, the engine was not measured: {said}")
        return found[0], said["answer"]


def tried(act: Callable[[], dict | str]) -> dict | str:
    """Run until the kernel does not refuse memory, at most `TRIES` times."""
    for _ in range(TRIES):
        try:
            said = act()
        except OSError as error:
            return f"refused: {error}"
        if said != OUT_OF_MEMORY:
            return said
        print("the kernel refused memory: once more", file=sys.stderr, flush=True)
    return OUT_OF_MEMORY


def measure(options: argparse.Namespace, scale: int, url: str) -> Iterator[dict]:
    """Yield, after each round on one graph, the seconds of every round by place."""
    words = [sys.executable, str(ENGINE), "run", str(graph(scale))]
    most, answer = peak(words, options.timeout_s)
    acts = places(options, words, most, url, answer)
    names = [name for name in acts if name in options.places]
    local = local_bytes(most.private, options.local)
    result = {"scale": scale, "edges": 0, "private": most.private, "beside": most.beside}
    result |= {"local": local, "loads": [], "rounds": {place: [] for place in names}}
    for number in range(options.rounds):
        turn = number % len(names)
        for place in names[turn:] + names[:turn]:
            began = time.monotonic()
            result["loads"].append(os.getloadavg()[0])
            said = tried(acts[place])
            shown = said if isinstance(said, str) else f"{said['whole']:.2f} s"
            with_rest_s = time.monotonic() - began
            text = f"2^{scale}, {place}: {shown}, {with_rest_s:.1f} s with start and end"
            print(text, file=sys.stderr, flush=True)
            result["edges"] = result["edges"] if isinstance(said, str) else said["edges"]
            result["rounds"][place].append(said)
        yield result


def cell(values: list, part: str) -> str:
    """Return the median, the least and the most; or what kept a run from its end."""
    if failed := [value for value in values if isinstance(value, str)]:
        return failed[0]
    return command.spread([value[part] for value in values])


def over(ours: list, peer: list | None) -> str:
    """Return the median of the ratios of each round, where all ended."""
    if peer is None or any(isinstance(value, str) for value in [*ours, *peer]):
        return "-"
    pairs = zip(ours, peer, strict=True)
    return f"{statistics.median(one['whole'] / other['whole'] for one, other in pairs):.2f}"


def table(results: list) -> str:
    """Return the results as a Markdown table."""
    heads = ["graph", "where", *(f"{part}, s" for part in PARTS), "whole, s"]
    heads += ["over all local", f"over {SERVER}"]
    rows = []
    for result in results:
        rounds = result["rounds"]
        for place, values in rounds.items():
            cells = [f"2^{result['scale']}", place]
            cells += [cell(values, part) for part in [*PARTS, "whole"]]
            rows.append(cells + [over(values, rounds.get(peer)) for peer in (LOCAL, SERVER)])
    return markdown(heads, rows)


def sizes(results: list) -> str:
    """Return each graph's size, and what is local of its peak."""
    lines = []
    for result in results:
        peak_mib, local_mib = result["private"] / MIB, result["local"] / MIB
        edges = f"2^{result['scale']} vertices, {result['edges']:,} edges"
        share = f"{local_mib:.0f} MiB local of {peak_mib:.0f}"
        beside = f"{result['beside'] / MIB:.1f} MiB of the kernel's beside"
        loads = f"load {min(result['loads']):.1f} to {max(result['loads']):.1f}"
        lines.append(f"{edges}: {share}; {beside}; {loads}")
    return "\n".join(lines)


def draw(results: list, path: Path) -> None:
    """Draw the medians as bars: a panel for each part, a group for each graph."""
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("svg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    mpl.rcParams["svg.hashsalt"] = "ethermem"
    figure, grid = plt.subplots(
        1, len(PARTS), figsize=(12, 4.6), sharey=True, constrained_layout=True
    )
    names = list(results[0]["rounds"])
    width = 0.84 / len(names)
    for axes, part in zip(grid, PARTS, strict=True):
        for index, name in enumerate(names):
            every = [spread(result["rounds"].get(name, []), part) for result in results]
            low, middles, high = zip(*every, strict=True)
            errors = [
                [middle - least for middle, least in zip(middles, low, strict=True)],
                [most - middle for middle, most in zip(middles, high, strict=True)],
            ]
            offset = (index - len(names) / 2 + 0.5) * width
            at = [place + offset for place in range(len(results))]
            axes.bar(at, middles, width, yerr=errors, label=name, color=f"C{index}")
        labels = [f"2^{result['scale']} vertices" for result in results]
        axes.set_xticks(range(len(results)), labels)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.set_title(part)
    grid[0].set_ylabel("seconds, logarithmic")
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    figure.savefig(path, metadata={"Date": None})


def spread(values: list, part: str) -> tuple[float, float, float]:
    """Return the least, the median and the most seconds of a part, if every run ended."""
    if not values or any(isinstance(value, str) for value in values):
        return math.nan, math.nan, math.nan
    seconds = [value[part] for value in values]
    return min(seconds), statistics.median(seconds), max(seconds)


def scales(text: str) -> list[int]:
    """Parse the graphs' scales."""
    return [whole(SCALES[0], SCALES[-1])(part) for part in text.split(",")]


def arguments(words: list[str]) -> argparse.Namespace:
    """Parse the arguments."""
    every = [LOCAL, POOL, NODE, *NETWORKS, ZRAM, FILE, SERVER]
    parser = command.Parser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--command", default="target/release/ethermem")
    parser.add_argument("--scales", type=scales, default=[16, 17, 18], help="16,17,18")
    parser.add_argument("--rounds", type=whole(1, 100), default=3)
    parser.add_argument("--local", type=whole(1, 100), default=25, help="percent of the peak")
    parser.add_argument("--places", nargs="+", choices=every, default=every)
    parser.add_argument("--timeout-s", type=whole(1, 36_000), default=600, help="of a run")
    parser.add_argument("--swap-folder", type=folder, help="on the disk to swap to: out")
    parser.add_argument("--json", type=Path, help="where to write all values")
    parser.add_argument("--results", type=Path, nargs="+", help="measured before, by --json")
    parser.add_argument("--draw", type=Path, help="where to draw them, as SVG")
    options = parser.parse_args(words)
    if options.swap_folder is None:
        options.swap_folder = ROOT / "out"
        options.swap_folder.mkdir(exist_ok=True)
    return options


def lacks(options: argparse.Namespace) -> str | None:
    """Say what is not there."""
    if importlib.util.find_spec("networkit") is None:
        return "no Python package networkit: `make bench-graph` installs it"
    if options.draw and importlib.util.find_spec("matplotlib") is None:
        return "no Python package matplotlib, which draws"
    if shutil.which(options.command) is None:
        return f"{options.command} is not there: `make build`"
    return kernel.lacks()


def read_results(path: Path) -> list:
    """Read what `--json` wrote."""
    try:
        results = json.loads(path.read_text())
        cells = [value for result in results for value in result["rounds"].values()]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BenchError(f"{path}: must be what --json wrote") from error
    if not cells:
        raise BenchError(f"{path}: there are no results")
    return results


def measured(options: argparse.Namespace) -> list:
    """Measure every graph, by a memory node of this program's own."""
    options.command = str(Path(shutil.which(options.command) or "").absolute())
    address = f"127.0.0.1:{free_port()}"
    node = [options.command, "node", "--memory", "2GiB", "--listen", address, "--insecure"]
    results: list[dict] = []
    with started(node, "serving"):
        for scale in options.scales:
            for result in measure(options, scale, f"udp://{address}"):
                results = [*(one for one in results if one["scale"] != scale), result]
                if options.json:
                    options.json.write_text(json.dumps(results, indent=2))
    return results


def main(words: list[str]) -> int:
    """Read the arguments, measure, print."""
    options = arguments(words)
    # What was made is removed, also when the bench is ended from outside.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        if options.results:
            results = [one for path in options.results for one in read_results(path)]
        elif lack := lacks(options):
            raise BenchError(lack)
        else:
            results = measured(options)
        if options.draw:
            draw(results, options.draw)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except (BenchError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{sizes(results)}\n\n{table(results)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
