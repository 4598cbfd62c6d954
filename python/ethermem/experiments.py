"""Experiments: reports, comparisons and studies, with the command's exact output.

Each function does what the command of its name does: the page and the JSON are equal.
"""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from . import _native
from ._toml import Value, setting

Name: TypeAlias = str | os.PathLike[str]

#: Time that an interrupted study has to end the program that it runs, in seconds.
_ENDING_S = 5.0
_SEED_END = 1 << 64
_THREADS_MAX = 1024


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """The result of an experiment."""

    json: str
    """The results, as the command prints or writes them."""
    text: str
    """The table for people, as the command prints it into a pipe."""
    page: Path | None
    """The page of tables and figures, if one was written."""

    @property
    def results(self) -> Any:  # noqa: ANN401  # What JSON holds.
        """The results as dictionaries and lists; `docs/reference/output.md` explains the fields."""
        return json.loads(self.json)


@dataclass(frozen=True, kw_only=True)
class Replay:
    """Options for replaying a program's accesses on a simulated network."""

    cluster: int = 15
    """Number of blades of a cluster, a multiple of 3: compute, memory and disk blades."""
    embed: int = 144
    """Number of nodes of the network in which clusters are embedded."""
    rack_nodes: int = 16
    """Number of nodes per rack."""
    scope: Literal["rack", "datacenter"] = "datacenter"
    """Nodes that the blades of a cluster may use."""
    arrivals: Literal["drawn", "as-traced"] = "drawn"
    """How accesses of a trace become arrivals."""
    messages: int = 100_000
    """Approximate number of simulated accesses, of all clusters together."""
    from_ms: float = 0
    """Start of the used part of the trace, in ms."""
    length_ms: float | None = None
    """Length of the used part in ms; None extends to the end of the trace."""
    speed: float = 1
    """Speed of the machines relative to the traced one."""
    block_kib: int = 2048
    """Memory is spread over memory blades in blocks of this many KiB."""
    seed: int = 1
    """Seed of every random draw."""
    overrides: Mapping[str, Value | None] | None = None
    """Keys that override those of the network's scenario."""


def report(
    out: Name = "out/report",
    *,
    figures: Sequence[str] = (),
    quick: bool = False,
    seed: int | None = None,
    threads: int | None = None,
) -> Experiment:
    """Run every workload on EDM and its references, and write a page of figures.

    The same as `ethermem report`. Other threads of Python run meanwhile, and Ctrl-C ends it.

    Args:
        out: the folder of the report: index.html and results.json.
        figures: names of figures; all by default.
        quick: runs few messages. It shows in a second that everything works, but shows no tails.
        seed: seed of every run, 0 to 2^64 - 1; the scenarios' by default.
        threads: number of concurrent runs; results are equal for every number.

    Raises:
        InputError: an argument cannot be used.
        FileError: the folder cannot be written.
        InvariantError: a defect of ethermem.
    """
    _check(seed, threads)
    request = {"out": os.fsdecode(out), "figures": list(figures), "quick": quick, "seed": seed}
    words = ["report", *_each("--figure", figures)]
    words += ["--quick"] if quick else []
    words += [] if seed is None else ["--seed", str(seed)]
    words += ["--out", os.fsdecode(out)]
    return _experiment(_native.report(json.dumps(request), words, threads))


def compare(
    scenario: Name | None = None,
    overrides: Mapping[str, Value | None] | None = None,
    *,
    fabrics: Sequence[str] = (),
    trace: Name | None = None,
    trace_format: str | None = None,
    seed: int | None = None,
    method: Literal["steady", "published"] = "steady",
    experiments: Sequence[str] = (),
    out: Name | None = None,
    threads: int | None = None,
) -> Experiment:
    """Run the same messages on several fabrics, side by side.

    The same as `ethermem compare`. Other threads of Python run meanwhile, and Ctrl-C ends it.

    Args:
        scenario: a file, or the name of a scenario of the program. With a table `[compare]` it
            holds several points and their fabrics.
        overrides: keys set over what the scenario says, `{"workload.load": 0.8}`; None takes a key
            out.
        fabrics: names of `FABRICS`, in the order of the results; those of the table `[compare]` by
            default.
        trace: a trace whose messages run instead of the scenario's.
        trace_format: how the trace is written; by default its extension says it.
        seed: of every random draw, 0 to 2^64 - 1; the scenario's by default.
        method: how points are measured: every message to its end, or as the published values were
            made.
        experiments: names of experiments of the table `[compare]`; all by default.
        out: a folder for a page of tables and figures, with results.json.
        threads: runs at once; the results are the same for every number.

    Raises:
        InputError: something that was given cannot be used.
        FileError: a file cannot be read or written.
        InvariantError: a defect of ethermem.
    """
    _check(seed, threads)
    if method not in ("steady", "published"):
        raise _native.InputError(f"method = {method!r}: must be 'steady' or 'published'")
    settings = _settings(overrides)
    request = {
        "scenario": _path(scenario),
        "trace": _path(trace),
        "trace_format": trace_format,
        "seed": seed,
        "settings": settings,
        "fabrics": list(fabrics),
        "published": method == "published",
        "experiments": list(experiments),
        "out": _path(out),
    }
    words = ["compare", *([] if scenario is None else [os.fsdecode(scenario)])]
    words += [] if trace is None else ["--trace", os.fsdecode(trace)]
    words += [] if trace_format is None else ["--trace-format", trace_format]
    words += [] if seed is None else ["--seed", str(seed)]
    words += _each("--set", settings)
    words += ["--fabrics", ",".join(fabrics)] if fabrics else []
    words += ["--method", method] if method != "steady" else []
    words += _each("--experiment", experiments)
    words += [] if out is None else ["--out", os.fsdecode(out)]
    return _experiment(_native.compare(json.dumps(request), words, threads))


def capacity(
    overrides: Mapping[str, Value | None] | None = None,
    *,
    fabrics: Sequence[str] = (),
    workloads: Sequence[str | int] = (),
    seed: int = 1,
    out: Name | None = None,
    threads: int | None = None,
) -> Experiment:
    """Find the load that each fabric sustains, and its latency at equal goodput and equal share.

    The same as `ethermem capacity`. Other threads of Python run meanwhile, and Ctrl-C ends it.

    Args:
        overrides: keys of a scenario that says what the network is, `{"fabric.nodes": 144}`; 32
            nodes by default.
        fabrics: names of `FABRICS`, in the order of the results; all by default.
        workloads: bytes of a message, or names of applications; 64, 1024 and 4096 by default.
        seed: of every run, 0 to 2^64 - 1.
        out: a folder for a page of tables and figures, with results.json.
        threads: searches at once; the results are the same for every number.

    Raises:
        InputError: something that was given cannot be used.
        FileError: the folder cannot be written.
        InvariantError: a defect of ethermem.
    """
    _check(seed, threads)
    settings = _settings(overrides)
    names = [str(workload) for workload in workloads]
    request = {
        "fabrics": list(fabrics),
        "workloads": names,
        "settings": settings,
        "seed": seed,
        "out": _path(out),
    }
    words = ["capacity"]
    words += ["--fabrics", ",".join(fabrics)] if fabrics else []
    words += ["--workloads", ",".join(names)] if names else []
    words += _each("--set", settings)
    words += ["--seed", str(seed)]
    words += [] if out is None else ["--out", os.fsdecode(out)]
    return _experiment(_native.capacity(json.dumps(request), words, threads))


def study(
    program: Sequence[Name],
    out: Name = "out/study",
    *,
    local: Sequence[float] = (0.10, 0.25, 0.50, 0.75, 1.0),
    fabrics: Sequence[str] = ("edm", "cxl", "clio", "roce", "tcp"),
    gbps: Sequence[int] = (40, 100, 400),
    repeats: int = 3,
    repeats_max: int | None = None,
    prefetch: bool = True,
    replay: Replay | None = None,
    threads: int | None = None,
) -> Experiment:
    """Say what every fabric would cost a program: profile it, replay it, emulate what came out.

    The same as `ethermem study`, on Linux. The program has the standard streams of this process.
    What is done is kept in `out`: the same call goes on where it was ended.

    Args:
        program: the program and its arguments.
        out: the folder of the study.
        local: shares of the program's peak that stay local, 0.01 to 1.
        fabrics: names of `FABRICS`, in the order of the results.
        gbps: data rates of every node's link.
        repeats: the least number of runs with a network's delays, and as many without, of each
            point.
        repeats_max: the largest number, where intervals do not decide; four times as many if None,
            and 1 of 1.
        prefetch: whether pages are brought along that no thread waits for.
        replay: how the accesses are replayed.
        threads: replays at once; the results are the same for every number.

    Raises:
        InputError: something that was given cannot be used.
        FileError: a file cannot be read or written.
        ProgramError: the program failed.
        EthermemError: this machine cannot serve the program's memory.
    """
    replay = Replay() if replay is None else replay
    _check(replay.seed, threads)
    words = [os.fsdecode(word) for word in program]
    settings = _settings(replay.overrides)
    request = {
        "program": words,
        "prefetch": prefetch,
        "local": list(local),
        "fabrics": list(fabrics),
        "gbps": list(gbps),
        "repeats": repeats,
        "repeats_max": repeats_max,
        "out": os.fsdecode(out),
        "replay": _replay(replay, settings),
    }
    line = ["study", "--local", ",".join(_percent(share) for share in local)]
    line += ["--fabrics", ",".join(fabrics), "--gbps", ",".join(map(str, gbps))]
    line += ["--repeats", str(repeats)]
    line += [] if repeats_max is None else ["--repeats-max", str(repeats_max)]
    line += ["--out", os.fsdecode(out)]
    line += [*_replay_words(replay, settings), *([] if prefetch else ["--no-prefetch"])]
    return _apart(json.dumps(request), [*line, "--", *words], threads)


def _replay(replay: Replay, settings: list[str]) -> dict[str, Any]:
    """Return what the extension module reads."""
    fields = {name: getattr(replay, name) for name in Replay.__dataclass_fields__}
    del fields["overrides"]
    start, length = fields.pop("from_ms"), fields.pop("length_ms")
    fields["from_ns"] = _nanoseconds("from_ms", start)
    fields["length_ns"] = None if length is None else _nanoseconds("length_ms", length)
    return {**fields, "settings": settings}


def _replay_words(replay: Replay, settings: list[str]) -> list[str]:
    """Return the flags of what differs from the defaults."""
    words = []
    for name in Replay.__dataclass_fields__:
        value = getattr(replay, name)
        if name != "overrides" and value != getattr(Replay(), name):
            words += [f"--{name.replace('_', '-')}", str(value)]
    return words + _each("--set", settings)


def _nanoseconds(name: str, time_ms: float) -> int:
    if not 0 <= time_ms <= 1e12:  # noqa: PLR2004  # The range of the command.
        raise _native.InputError(f"{name} = {time_ms}: must be 0 to 1000000000000")
    return round(time_ms * 1e6)


def _percent(share: float) -> str:
    return f"{round(share * 100, 10):g}%"


def _apart(request: str, words: list[str], threads: int | None) -> Experiment:
    """Study a program in a process of its own.

    The pager takes over the signals and the children of its process.
    """
    script = Path(__file__).with_name("_study.py")
    with tempfile.TemporaryDirectory(prefix="ethermem-") as folder:
        answer = Path(folder, "answer.json")
        asked = json.dumps({"request": request, "words": words, "threads": threads})
        line = [sys.executable, "-I", "-S", str(script), str(_native.__file__), asked, str(answer)]
        with subprocess.Popen(line) as child:
            _wait(child)
        if not answer.exists():
            command = shlex.join(["ethermem", *words])
            code = child.returncode
            raise _native.EthermemError(f"the study ended with {code}; the command is: {command}")
        told = json.loads(answer.read_text())
    if "error" in told:
        raise getattr(_native, told["error"], _native.EthermemError)(told["line"])
    return _experiment((told["json"], told["text"], told["page"]))


def _wait(child: "subprocess.Popen[bytes]") -> None:
    try:
        child.wait()
    except KeyboardInterrupt:
        # At a terminal the child has the signal, too. What it runs ends first.
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(signal.SIGINT)
        try:
            child.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            child.kill()
        raise


def _experiment(done: tuple[str, str, str | os.PathLike[str] | None]) -> Experiment:
    json, text, page = done
    return Experiment(json=json, text=text, page=None if page is None else Path(page))


def _check(seed: int | None, threads: int | None) -> None:
    if seed is not None and not 0 <= seed < _SEED_END:
        raise _native.InputError(f"seed = {seed}: must be 0 to 2^64 - 1")
    if threads is not None and not 1 <= threads <= _THREADS_MAX:
        raise _native.InputError(f"threads = {threads}: must be 1 to {_THREADS_MAX}")


def _settings(overrides: Mapping[str, Value | None] | None) -> list[str]:
    return [setting(key, value) for key, value in (overrides or {}).items()]


def _each(flag: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (flag, value)]


def _path(name: Name | None) -> str | None:
    return None if name is None else os.fsdecode(name)
