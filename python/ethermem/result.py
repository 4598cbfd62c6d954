"""What a run came to: the fields of `ethermem sim --format json`, with their types.

`docs/reference/output.md` explains every number. None stands for what a fabric does not have or a
run did not measure.
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

    A slowdown is a latency over that of the same message alone in the same fabric; a latency is
    from arrival to end. Means, minima and maxima are exact; percentiles are of nearest rank.
    """

    messages: int
    """Messages measured."""
    slowdown_mean: float | None
    """Mean slowdown."""
    slowdown_p50: float | None
    """Half of the messages have at most this slowdown."""
    slowdown_p99: float | None
    """99 % of the messages have at most this slowdown."""
    slowdown_p999: float | None
    """99.9 % of the messages have at most this slowdown."""
    slowdown_min: float | None
    """Least slowdown."""
    slowdown_max: float | None
    """Largest slowdown."""
    latency_ns_mean: float | None
    """Mean latency, ns."""
    latency_ns_p50: float | None
    """Half of the messages take at most this long, ns."""
    latency_ns_p99: float | None
    """99 % of the messages take at most this long, ns."""
    latency_ns_p999: float | None
    """99.9 % of the messages take at most this long, ns."""
    latency_ns_max: float | None
    """Longest latency, ns."""
    bytes: int
    """Data bytes of these messages."""


@dataclass(frozen=True, kw_only=True)
class Kinds:
    """Statistics by what a message does."""

    read: KindStats
    """Reads."""
    write: KindStats
    """Writes."""
    rmw: KindStats | None = None
    """Atomics; None when the run has none."""
    all: KindStats
    """All of them, each message with the same weight."""


@dataclass(frozen=True, kw_only=True)
class Utilisation:
    """Shares of the links' block slots that were taken, over the simulated time."""

    uplink_mean: float
    """Mean of the links from node to switch."""
    uplink_max: float
    """The busiest of them."""
    downlink_mean: float
    """Mean of the links from switch to node."""
    downlink_max: float
    """The busiest of them."""


@dataclass(frozen=True, kw_only=True)
class Queue:
    """Memory traffic queued at switch egress."""

    egress_blocks_max: int
    """The most blocks that one port ever held."""
    egress_blocks_mean: float
    """Blocks, mean over time and ports."""
    egress_blocks_bound: int | None
    """Blocks that the fabric promises the maximum never exceeds."""


@dataclass(frozen=True, kw_only=True)
class Matching:
    """What the grant scheduler did."""

    rounds: int
    """Matchings that granted something."""
    grants: int
    """Grants given."""
    iterations_mean: float
    """Iterations that a matching took to become maximal, mean."""
    iterations_max: int
    """Iterations of the longest matching."""
    size_mean: float
    """Pairs joined at once, by one iteration, mean."""
    size_max: int
    """Pairs joined by the largest iteration: at most the ports."""


@dataclass(frozen=True, kw_only=True)
class FrameStats:
    """What became of background Ethernet frames; a latency is that of one link."""

    sent: int
    """Frames that all links sent."""
    waiting_blocks: int
    """Blocks of frames, unsent at the end."""
    unloaded_ns: float
    """A frame on a link with nothing else on it, ns."""
    latency_ns_mean: float | None
    """Mean latency, ns."""
    latency_ns_p50: float | None
    """Half of the frames take at most this long, ns."""
    latency_ns_p99: float | None
    """99 % of the frames take at most this long, ns."""
    latency_ns_max: float | None
    """Longest latency, ns."""
    slowdown_mean: float | None
    """Mean latency over `unloaded_ns`."""
    slowdown_p50: float | None
    """Median latency over `unloaded_ns`."""
    slowdown_p99: float | None
    """99 % of the frames have at most this slowdown."""
    latency_ns_mean_without_memory: float | None
    """Mean latency of the same frames on links without memory traffic, ns."""
    latency_ns_p99_without_memory: float | None
    """The same, of 99 % of them, ns."""


@dataclass(frozen=True, kw_only=True)
class PacketCounts:
    """What became of packets; None, as a whole, for a fabric without packets."""

    sent: int
    """Handed to the interfaces of hosts, acknowledgements among them."""
    delivered: int
    """Come to the other end."""
    dropped: int
    """Dropped by a queue that had no room."""
    marked: int
    """Delivered with the mark that they met congestion."""
    retransmitted: int
    """Sent that had been sent before."""
    timeouts: int
    """Deadlines of senders that ran out."""
    pauses: int | None = None
    """Times that a switch paused a link; None for a fabric that never does."""
    trimmed: int | None = None
    """That lost their data in a switch; None for a fabric that never trims."""
    returned: int | None = None
    """Sent back to their source by a switch; None as `trimmed`."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """The result of one run. All but `wall_s` is the same for the same scenario, seed and version.

    The fields are those of `ethermem sim --format json`.
    """

    fabric: str
    """Name of the fabric."""
    label: str
    """What tells this run from others of its fabric."""
    scenario: str
    """The scenario, as it was given."""
    seed: int
    """Seed of every random draw."""
    commit: str | None
    """Commit of the program, where it is known."""
    messages_started: int
    """Messages handed to the fabric: finished and lost ones, and no others."""
    messages_finished: int
    """Messages that ended well."""
    messages_lost: int
    """Messages that never ended."""
    messages_measured: int
    """Messages that `kinds` covers: no warm-up, no cool-down."""
    warmup_ns: float
    """Arrivals in this time from the first one are not measured, ns."""
    cooldown_ns: float
    """Arrivals in this time before the last one are not measured, ns."""
    simulated_ns: float
    """From the start to the last event, ns."""
    load_requested: float | None
    """Load that the scenario asks for, a share of the links; None for a trace."""
    load_measured: float | None
    """Share of block slots that messages and their control took, mean of the busier direction."""
    payload_goodput_gbps: float
    """Data bits finished over `simulated_ns`, the whole fabric, Gb/s."""
    payload_goodput_gbps_per_node: float
    """The same for the mean node, Gb/s."""
    control_overhead: float | None
    """Share of the memory traffic's slots with control or framing, no data."""
    kinds: Kinds
    """Slowdown and latency of measured messages."""
    utilisation: Utilisation | None
    """How full the links were."""
    queue: Queue | None
    """Memory traffic queued at switch egress."""
    matching: Matching | None
    """What the grant scheduler did."""
    frames: FrameStats | None
    """Ethernet frames on the same links."""
    packets: PacketCounts | None
    """What became of packets."""
    notices: tuple[str, ...]
    """Fallbacks, and anything else a reader of the numbers must know."""
    events: int
    """Events that the engine handled."""
    wall_s: float
    """Real time of the run, s."""

    _json: str = dataclasses.field(repr=False, compare=False)
    _cdfs: str = dataclasses.field(repr=False, compare=False)
    _messages: "pyarrow.Table | Path | None" = dataclasses.field(repr=False, compare=False)

    @classmethod
    def read(cls, text: str, cdfs: str, messages: "pyarrow.Table | Path | None") -> "Result":
        """Read what the simulator gives: the result and its distributions as JSON."""
        own = {"_json": text, "_cdfs": cdfs, "_messages": messages}
        return _fields(cls, json.loads(text), own)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as `ethermem sim --format json` prints it."""
        return cast("dict[str, Any]", json.loads(self._json))

    def to_arrow(self, rows: Literal["kinds", "messages"] = "kinds") -> "pyarrow.Table":
        """Return a table of Arrow.

        Args:
            rows: `kinds`: a row for reads, for writes, for atomics where there are any, and for
                all, with the columns of `KindStats`. `messages`: a row for each message, with the
                columns that `docs/reference/output.md` lists, times in ps; the run must have been
                told to keep them.
        """
        if rows == "kinds":
            return self._kinds()
        if rows != "messages":
            raise InputError(f"rows = {rows!r}: allowed are 'kinds', 'messages'")
        if self._messages is None:
            raise InputError("rows = 'messages': allowed after run(..., messages=True)")
        if isinstance(self._messages, Path):
            return read_parquet(self._messages)
        return self._messages

    def to_pandas(self, rows: Literal["kinds", "messages"] = "kinds") -> pandas.DataFrame:
        """Return a table of pandas; see `to_arrow`."""
        return cast(pandas.DataFrame, self.to_arrow(rows).to_pandas())

    def latency_cdf(self, kind: KindName = "all") -> pandas.DataFrame:
        """Return the distribution of latency, some 400 points with the tail drawn finest.

        Columns: `latency_ns`, and `share`, the exact share of the measured messages of `kind` that
        took at most so long.
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
    """Make `cls` of JSON; a key that it does not know is an error, as is one that is missing."""
    hints = {field.name: hint for field, hint in zip(_public(cls), _hints(cls), strict=True)}
    return cls(**{name: _typed(hints.get(name), value) for name, value in values.items()}, **own)


def _typed(hint: Any, value: Any) -> Any:  # noqa: ANN401  # Types are made of JSON here.
    if get_origin(hint) in (Union, types.UnionType) and value is not None:
        hint = next(part for part in get_args(hint) if part is not types.NoneType)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type) and value is not None:
        return _fields(hint, value, {})
    return tuple(value) if isinstance(value, list) else value
