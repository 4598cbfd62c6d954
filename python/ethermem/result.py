"""The result of a run: the fields of `ethermem sim --format json`, with their types.

`docs/reference/output.md` explains every number. None stands for a property that a fabric lacks or
that a run did not measure.
"""

import dataclasses
import json
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import pandas
import pyarrow
import pyarrow.parquet

from ._native import FileError, InputError

KindName = Literal["read", "write", "rmw", "all"]

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class KindStats:
    """Slowdown and latency of the measured messages of a kind.

    A slowdown is a message's latency over its latency alone in the same fabric. A latency is
    from arrival to completion. Means, minima and maxima are exact; percentiles are of nearest rank.
    """

    messages: int
    """Number of messages measured."""
    slowdown_mean: float | None
    """Mean slowdown."""
    slowdown_p50: float | None
    """Median slowdown."""
    slowdown_p99: float | None
    """99th percentile of slowdown."""
    slowdown_p999: float | None
    """99.9th percentile of slowdown."""
    slowdown_min: float | None
    """Smallest slowdown."""
    slowdown_max: float | None
    """Largest slowdown."""
    latency_ns_mean: float | None
    """Mean latency in ns."""
    latency_ns_p50: float | None
    """Median latency in ns."""
    latency_ns_p99: float | None
    """99th percentile of latency in ns."""
    latency_ns_p999: float | None
    """99.9th percentile of latency in ns."""
    latency_ns_max: float | None
    """Largest latency in ns."""
    bytes: int
    """Data bytes of these messages."""


@dataclass(frozen=True, kw_only=True)
class Kinds:
    """Statistics by kind of message."""

    read: KindStats
    """Statistics of reads."""
    write: KindStats
    """Statistics of writes."""
    rmw: KindStats | None = None
    """Statistics of atomics; None if the run has none."""
    all: KindStats
    """Statistics of all messages, weighted equally."""


@dataclass(frozen=True, kw_only=True)
class Steady:
    """Whether a run of synthetic messages has settled, and how it is known.

    `docs/reference/output.md` names the methods. A half width is that of a 95 % confidence interval
    from 20 batches of messages.
    """

    state: Literal["settled", "unsettled", "not-sustained"]
    """What the numbers are worth. Latencies of a load that is not sustained grow with the run."""
    why: str | None
    """Why it has not settled."""
    load_carried: float | None
    """The load that ended while messages arrived; None for a run too short to know."""
    backlog_growth: float | None
    """Share of the bytes that arrived by which the backlog grew."""
    warmup_messages: int | None
    """Messages that the warm-up takes by MSER-5; None where it does not end in the first half."""
    batch_correlation: float | None
    """Correlation of the mean slowdown of a batch with that of the next one."""
    slowdown_mean_ci95_half_width: float | None
    """Half width of the mean slowdown."""
    slowdown_p99_ci95_half_width: float | None
    """Half width of the 99th percentile."""
    latency_ns_mean_ci95_half_width: float | None
    """Half width of the mean latency, ns."""
    latency_ns_p99_ci95_half_width: float | None
    """Half width of the 99th percentile, ns."""
    imprecision: float | None
    """The largest of the four over what is asked: 3 % of a mean, 5 % of a 99th percentile."""


@dataclass(frozen=True, kw_only=True)
class ProgramStats:
    """Time of a program, and the least time that links allow."""

    name: str
    """Name of the program, as in scenarios."""
    steps: int
    """Number of messages and computations."""
    finished_ns: float
    """Time to the end of the last step in ns."""
    links_ns: float
    """Least time in ns on links of the scenario's rate that have no latency."""
    over_links: float | None
    """`finished_ns` over `links_ns`; None if the latter is zero."""


@dataclass(frozen=True, kw_only=True)
class Utilisation:
    """Fractions of the links' block slots that were used, over the simulated time."""

    uplink_mean: float
    """Mean of the links from node to switch."""
    uplink_max: float
    """Value of the busiest link from node to switch."""
    downlink_mean: float
    """Mean of the links from switch to node."""
    downlink_max: float
    """Value of the busiest link from switch to node."""


@dataclass(frozen=True, kw_only=True)
class Queue:
    """Memory traffic queued at switch egress."""

    egress_blocks_max: int
    """Largest number of blocks that one port held."""
    egress_blocks_mean: float
    """Number of blocks, mean over time and ports."""
    egress_blocks_bound: int | None
    """Upper bound in blocks that the fabric guarantees."""


@dataclass(frozen=True, kw_only=True)
class Matching:
    """Statistics of the grant scheduler."""

    rounds: int
    """Number of matchings that granted something."""
    grants: int
    """Number of grants."""
    iterations_mean: float
    """Mean number of iterations until a matching was maximal."""
    iterations_max: int
    """Number of iterations of the longest matching."""
    size_mean: float
    """Mean number of pairs matched by one iteration."""
    size_max: int
    """Pairs matched by the largest iteration: at most the number of ports."""


@dataclass(frozen=True, kw_only=True)
class FrameStats:
    """Statistics of background Ethernet frames; a latency is that of one link."""

    sent: int
    """Number of frames that all links sent."""
    waiting_blocks: int
    """Blocks of frames that were unsent at the end."""
    unloaded_ns: float
    """Latency of a frame on an otherwise idle link in ns."""
    latency_ns_mean: float | None
    """Mean latency in ns."""
    latency_ns_p50: float | None
    """Median latency in ns."""
    latency_ns_p99: float | None
    """99th percentile of latency in ns."""
    latency_ns_max: float | None
    """Largest latency in ns."""
    slowdown_mean: float | None
    """Mean latency over `unloaded_ns`."""
    slowdown_p50: float | None
    """Median latency over `unloaded_ns`."""
    slowdown_p99: float | None
    """99th percentile of latency over `unloaded_ns`."""
    latency_ns_mean_without_memory: float | None
    """Mean latency of the same frames on links without memory traffic in ns."""
    latency_ns_p99_without_memory: float | None
    """99th percentile of latency of the same frames on links without memory traffic in ns."""


@dataclass(frozen=True, kw_only=True)
class PacketCounts:
    """Counters of packets; the object is None for a fabric without packets."""

    sent: int
    """Packets handed to the hosts' interfaces, including acknowledgements."""
    delivered: int
    """Packets that arrived at the other end."""
    dropped: int
    """Packets dropped by a full queue."""
    marked: int
    """Packets delivered with a congestion mark."""
    retransmitted: int
    """Packets retransmitted."""
    timeouts: int
    """Retransmission timeouts of senders."""
    pauses: int | None = None
    """Number of times that a switch paused a link; None for a fabric that never pauses."""
    trimmed: int | None = None
    """Packets whose data a switch removed; None for a fabric that never trims."""
    returned: int | None = None
    """Packets that a switch returned to their source; None for a fabric that never trims."""


@dataclass(frozen=True, kw_only=True)
class MemoryUse:
    """Bytes that one user moved to and from one memory of a rack."""

    rack: int
    """Rack of the memory."""
    memory: Literal["node", "device", "cache"]
    """Kind of the memory: a node's DRAM, a memory device, or a node's DRAM cache."""
    number: int
    """The node that the memory belongs to, or the number of the device in its rack."""
    user: Literal["node", "nics"]
    """What reads and writes: a node, or the NICs of the rack."""
    node: int
    """The node that reads and writes, or whose packets the NICs read and write."""
    read_bytes: int
    """Bytes read."""
    written_bytes: int
    """Bytes written."""
    read_bytes_by_slice: tuple[int, ...]
    """Bytes read in each slice, up to the last one with a byte."""
    written_bytes_by_slice: tuple[int, ...]
    """Bytes written in each slice, up to the last one with a byte."""


@dataclass(frozen=True, kw_only=True)
class MemoryTraffic:
    """Traffic of the memories that a fabric simulates."""

    slice_ns: float
    """Length of a slice in ns."""
    uses: tuple[MemoryUse, ...]
    """One entry for each memory and user that moved a byte."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """The result of one run. All but `wall_s` depends only on scenario, seed and version.

    The fields are those of `ethermem sim --format json`.
    """

    fabric: str
    """Name of the fabric."""
    label: str
    """Label that distinguishes this run from others of its fabric."""
    scenario: str
    """The scenario as given."""
    seed: int
    """Seed of every random draw."""
    commit: str | None
    """Commit of the program, if known."""
    messages_started: int
    """Number of messages handed to the fabric, which are the finished and the lost ones."""
    messages_finished: int
    """Number of messages that completed."""
    messages_lost: int
    """Number of messages that never completed."""
    messages_measured: int
    """Number of messages in `kinds`, which excludes warm-up and cool-down."""
    warmup_ns: float
    """Time from the first arrival during which arrivals are not measured, in ns."""
    cooldown_ns: float
    """Time before the last arrival during which arrivals are not measured, in ns."""
    simulated_ns: float
    """Time from the start to the last event in ns."""
    load_requested: float | None
    """Load that the scenario requests, as a fraction of the links; None for others."""
    load_measured: float | None
    """Fraction of block slots used by messages and control, mean of the busier direction."""
    payload_goodput_gbps: float
    """Completed data bits over `simulated_ns`, for the whole fabric, in Gb/s."""
    payload_goodput_gbps_per_node: float
    """Completed data bits over `simulated_ns`, for the mean node, in Gb/s."""
    control_overhead: float | None
    """Fraction of the memory traffic's slots that held control or framing instead of data."""
    steady: Steady | None
    """Whether the numbers would stay in a longer run; None for a trace or a program."""
    program: ProgramStats | None = None
    """The time of a program; None for other workloads."""
    kinds: Kinds
    """Slowdown and latency of measured messages."""
    utilisation: Utilisation | None
    """Utilisation of the links."""
    queue: Queue | None
    """Memory traffic queued at switch egress."""
    matching: Matching | None
    """Statistics of the grant scheduler."""
    frames: FrameStats | None
    """Ethernet frames on the same links."""
    packets: PacketCounts | None
    """Counters of packets."""
    memories: MemoryTraffic | None = None
    """Traffic of memories over time; None unless the scenario requests it."""
    notices: tuple[str, ...]
    """Fallbacks, and other caveats for readers of the numbers."""
    events: int
    """Number of events that the engine handled."""
    wall_s: float
    """Real time of the run in seconds."""

    _json: str = dataclasses.field(repr=False, compare=False)
    _cdfs: str = dataclasses.field(repr=False, compare=False)
    _messages: "pyarrow.Table | Path | None" = dataclasses.field(repr=False, compare=False)

    @classmethod
    def read(cls, text: str, cdfs: str, messages: "pyarrow.Table | Path | None") -> "Result":
        """Read the simulator's output: the result and its distributions as JSON."""
        own = {"_json": text, "_cdfs": cdfs, "_messages": messages}
        return _fields(cls, json.loads(text), own)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as `ethermem sim --format json` prints it."""
        return cast("dict[str, Any]", json.loads(self._json))

    def to_arrow(self, rows: Literal["kinds", "messages"] = "kinds") -> "pyarrow.Table":
        """Return a table of Arrow.

        Args:
            rows: `kinds`: a row for reads, for writes, for atomics if there are any, and for
                all, with the columns of `KindStats`. `messages`: a row for each message, with the
                columns that `docs/reference/output.md` lists, times in ps; the run must have kept
                its messages.
        """
        if rows == "kinds":
            return self._kinds()
        if rows != "messages":
            raise InputError(f"rows = {rows!r}: must be 'kinds', 'messages'")
        if self._messages is None:
            raise InputError("rows = 'messages': allowed after run(..., messages=True)")
        if isinstance(self._messages, Path):
            return read_parquet(self._messages)
        return self._messages

    def to_pandas(self, rows: Literal["kinds", "messages"] = "kinds") -> pandas.DataFrame:
        """Return a table of pandas; see `to_arrow`."""
        return cast(pandas.DataFrame, self.to_arrow(rows).to_pandas())

    def latency_cdf(self, kind: KindName = "all") -> pandas.DataFrame:
        """Return the distribution of latency, about 400 points, densest in the tail.

        Columns: `latency_ns`, and `share`, the exact fraction of the measured messages of `kind`
        that took at most that long.
        """
        points = json.loads(self._cdfs).get(kind)
        return pandas.DataFrame(points or [], columns=["latency_ns", "share"], dtype="float64")

    def _kinds(self) -> "pyarrow.Table":
        named = {field.name: getattr(self.kinds, field.name) for field in _public(Kinds)}
        present = {name: stats for name, stats in named.items() if stats is not None}
        columns = [pyarrow.field("kind", pyarrow.string(), nullable=False)]
        for field, hint in zip(_public(KindStats), _hints(KindStats), strict=True):
            whole = hint is int
            kind = pyarrow.uint64() if whole else pyarrow.float64()
            columns.append(pyarrow.field(field.name, kind, nullable=not whole))
        rows = [{"kind": name, **dataclasses.asdict(stats)} for name, stats in present.items()]
        return pyarrow.Table.from_pylist(rows, schema=pyarrow.schema(columns))


def read_parquet(path: Path) -> "pyarrow.Table":
    """Read a Parquet file that ethermem wrote."""
    try:
        return pyarrow.parquet.read_table(path)
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror or error}") from error


def _public(cls: type) -> list["dataclasses.Field[Any]"]:
    return [field for field in dataclasses.fields(cls) if not field.name.startswith("_")]


def _hints(cls: type) -> list[Any]:
    hints = get_type_hints(cls)
    return [hints[field.name] for field in _public(cls)]


def _fields(cls: type[_T], values: dict[str, Any], own: dict[str, Any]) -> _T:
    """Make `cls` from JSON; an unknown key is an error, as is a missing one."""
    hints = {field.name: hint for field, hint in zip(_public(cls), _hints(cls), strict=True)}
    return cls(**{name: _typed(hints.get(name), value) for name, value in values.items()}, **own)


def _typed(hint: Any, value: Any) -> Any:  # noqa: ANN401  # Types are made of JSON here.
    if get_origin(hint) in (Union, types.UnionType) and value is not None:
        hint = next(part for part in get_args(hint) if part is not types.NoneType)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type) and value is not None:
        return _fields(hint, value, {})
    if not isinstance(value, list):
        return value
    of = next(iter(get_args(hint)), None)
    return tuple(_typed(of, one) for one in value)
