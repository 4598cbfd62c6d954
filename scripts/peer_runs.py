"""Messages for two simulators, runs of ours, and the table that compares completion times."""

import csv
import hashlib
import json
import random
import struct
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from edm_artifact import WrongError, run

PS_PER_S = 1_000_000_000_000
# The longest run takes a fifth of this.
TIMEOUT_S = 3600
# A ratio of means or of 99th percentiles that is further than this from 1 is marked.
OFF = 0.10


@dataclass(frozen=True)
class Message:
    """Data that one node sends to another at once, in whole packets."""

    at_ps: int
    source: int
    destination: int
    packets: int


@dataclass(frozen=True)
class Variant:
    """One change on one side: keys of our scenario, or options and edits of the peer."""

    name: str
    keys: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    edits: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """One trace on one of our fabrics and on the peer, and the variants that explain it."""

    name: str
    fabric: str
    trace: str
    messages: Callable[[], list[Message]]
    variants: tuple[Variant, ...] = (Variant("base"),)


@dataclass
class Times:
    """Completion times of one run in microseconds, by message; None where one did not end."""

    us: list[float | None] = field(default_factory=list)


def poisson(
    seed: int, nodes: int, count: int, load: float, sizes: list[tuple[float, int, int]], ps: int
) -> list[Message]:
    """Return messages between all pairs of nodes, which arrive at random.

    A size is a share and the least and the most packets; `ps` is the time of a packet on a link.
    """
    draws = random.Random(seed)
    mean = sum(share * (least + most) / 2 for share, least, most in sizes)
    gap_ps = mean * ps / nodes / load
    at, made = 0.0, []
    for _ in range(count):
        at += draws.expovariate(1 / gap_ps)
        source, other = draws.randrange(nodes), draws.randrange(nodes - 1)
        _, least, most = draws.choices(sizes, [share for share, _, _ in sizes])[0]
        packets = draws.randint(least, most)
        made.append(Message(exact(at), source, other + (other >= source), packets))
    return made


def incasts(
    seed: int, nodes: int, senders: int, packets: int, rounds: int, every_ps: int
) -> list[Message]:
    """Return rounds of messages from many nodes to one, all senders of a round at once."""
    draws = random.Random(seed)
    made = []
    for number in range(rounds):
        destination = draws.randrange(nodes)
        others = [node for node in range(nodes) if node != destination]
        at = exact(number * every_ps)
        made += [Message(at, node, destination, packets) for node in draws.sample(others, senders)]
    return made


def exact(at_ps: float) -> int:
    """Return a time near this one that htsim reads exactly: it reads picoseconds as a float."""
    return int(struct.unpack("f", struct.pack("f", at_ps))[0])


def write_trace(messages: list[Message], packet_bytes: int, file: Path) -> None:
    """Write the messages in our trace format."""
    with file.open("w", newline="") as made:
        rows = csv.writer(made, lineterminator="\n")
        rows.writerow(["arrival_ns", "kind", "compute", "memory", "bytes"])
        for message in messages:
            ends = [message.source, message.destination]
            size = message.packets * packet_bytes
            rows.writerow([f"{message.at_ps / 1000:.3f}", "write", *ends, size])


def ours(
    command: Path, scenario: str, trace: Path, fabric: str, keys: tuple[str, ...], out: Path
) -> Times:
    """Run our fabric on the trace."""
    try:
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise WrongError("no module pyarrow; install it: pip install pyarrow") from None
    what = hashlib.sha256("".join((scenario, *keys)).encode()).hexdigest()[:8]
    file = out / f"{trace.stem}-{fabric}-{what}.toml"
    file.write_text(scenario)
    ended = file.with_suffix(".parquet")
    sets = [word for key in keys for word in ("--set", key)]
    words = [command.resolve(), "sim", file, "--trace", trace, "--fabric", fabric]
    run([*words, "--messages", ended, "--format", "json", *sets], out)
    rows = parquet.read_table(ended, columns=["arrival_ps", "finished_ps"]).to_pylist()
    return Times(
        [
            None if row["finished_ps"] is None else (row["finished_ps"] - row["arrival_ps"]) / 1e6
            for row in rows
        ]
    )


@dataclass(frozen=True)
class LeafSpine:
    """A network of racks whose switches store packets and take no time themselves."""

    nodes: int
    rack: int
    spines: int
    gbps: int
    link_ns: int
    mtu_bytes: int
    balancing: str | None = None

    def scenario(self, kind: str, keys: str) -> str:
        """Return our scenario of a fabric with these keys, without its trace."""
        balancing = f'balancing = "{self.balancing}"\n' if self.balancing else ""
        return f"""\
[fabric]
kind = "{kind}"
nodes = {self.nodes}
link_gbps = {self.gbps}
topology = "leaf-spine"
propagation_ns = {self.link_ns}
transceiver_ns = 0
pcs_clock_ns = 0.001
[fabric.leaf_spine]
rack_nodes = {self.rack}
spines = {self.spines}
propagation_ns = {self.link_ns}
{balancing}[fabric.packet]
mtu_bytes = {self.mtu_bytes}
memory_header_bytes = 0
forwarding_ns = 0
[fabric.{kind}]
{keys}"""


def changed(folder: Path, name: str, edits: tuple[str, ...], words: dict[str, str]) -> Path:
    """Return the peer's program with these changes, which its user has built."""
    program = folder / "-".join([name, *edits])
    if not program.is_file():
        must = "; ".join(words[edit] for edit in edits)
        raise WrongError(f"{program}: there is no such program; it must be built so: {must}")
    return program.resolve()


def built(program: Path) -> str:
    """Return what tells this program from others of its name."""
    return hashlib.sha256(program.read_bytes()).hexdigest()


def logged(words: list[object], log: Path) -> str:
    """Return the output of a peer's run, or of an earlier one of the same program and input."""
    if not log.exists():
        part = log.with_suffix(".part")
        with part.open("w") as told:
            try:
                subprocess.run(
                    [str(word) for word in words],
                    cwd=log.parent,
                    stdout=told,
                    stderr=told,
                    timeout=TIMEOUT_S,
                    check=True,
                )
            except subprocess.TimeoutExpired as error:
                raise WrongError(f"{words[0]} ran for over {TIMEOUT_S} s; see {part}") from error
            except subprocess.CalledProcessError as error:
                raise WrongError(f"{words[0]} ended with {error.returncode}; see {part}") from error
        part.replace(log)
    return log.read_text(errors="replace")


def digest(*parts: object) -> str:
    """Return a short name of what a run depends on."""
    return hashlib.sha256(json.dumps([str(part) for part in parts]).encode()).hexdigest()[:10]


def percentile(sorted_us: list[float], share: float) -> float:
    """Return the least value that at least this share of the values does not exceed."""
    place = max(0, -(-int(share * 1_000_000) * len(sorted_us) // 1_000_000) - 1)
    return sorted_us[place]


def classes(messages: list[Message], limits: list[tuple[int, int]]) -> dict[str, list[int]]:
    """Return the messages of each size class that has any, and of all, by position."""
    found = {"all": list(range(len(messages)))}
    for least, most in limits:
        name = str(least) if least == most else f"{least} to {most}"
        inside = [place for place, one in enumerate(messages) if least <= one.packets <= most]
        if inside and len(inside) < len(messages):
            found[name] = inside
    return found


def compared(theirs: Times, own: Times, places: list[int]) -> list[str]:
    """Return the cells of one row: number, means and their ratio, percentiles and theirs."""
    both = [
        (their, our)
        for their, our in ((theirs.us[place], own.us[place]) for place in places)
        if their is not None and our is not None
    ]
    cells = [str(len(both)) if len(both) == len(places) else f"{len(both)} of {len(places)}"]
    if not both:
        return [*cells, "", "", "", "", "", ""]
    left, right = (sorted(side) for side in zip(*both, strict=True))
    for a, b in (
        (sum(left) / len(left), sum(right) / len(right)),
        (percentile(left, 0.99), percentile(right, 0.99)),
    ):
        mark = " (!)" if abs(b / a - 1) > OFF else ""
        cells += [f"{a:.3f}", f"{b:.3f}", f"{b / a:.3f}{mark}"]
    return cells


HEAD = [
    "packets",
    "messages",
    "mean us, theirs",
    "ours",
    "ratio",
    "p99 us, theirs",
    "ours",
    "ratio",
]


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return rows as Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
