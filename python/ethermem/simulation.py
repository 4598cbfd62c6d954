"""Runs of the simulator."""

import os
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pyarrow
import pyarrow.parquet

from . import _native
from ._toml import Value, document, setting
from .result import Result


def run(
    scenario: str | os.PathLike[str] | Mapping[str, Value],
    overrides: Mapping[str, Value | None] | None = None,
    *,
    fabric: str | None = None,
    seed: int | None = None,
    messages: bool | str | os.PathLike[str] = False,
) -> Result:
    """Run a scenario to the end of its last message.

    Other threads of Python run meanwhile, and Ctrl-C ends it within a second.

    Args:
        scenario: a file; or TOML, which is text with a line break in it; or a dictionary of tables.
            `docs/reference/scenario.md` lists its keys, units in their names. Files that TOML or a
            dictionary names are relative to the current folder.
        overrides: keys that override the scenario's, `{"workload.load": 0.8}`; None removes a key.
        fabric: the fabric to run on, one of `FABRICS`; the scenario's by default. The messages stay
            those of the scenario's own fabric.
        seed: seed of every random draw, 0 to 2^64 - 1; the scenario's by default.
        messages: True keeps every message in memory for `Result.to_arrow("messages")`; the name of
            a file writes them there as Parquet.

    Raises:
        InputError: an argument cannot be used; the line is that of the command.
        FileError: a file cannot be read or written.
        InvariantError: a defect of ethermem.
    """
    text, name, repeat = _given(scenario)
    settings = [setting(key, value) for key, value in (overrides or {}).items()]
    words = [part for each in settings for part in ("--set", each)]
    words += [] if fabric is None else ["--fabric", fabric]
    words += [] if seed is None else ["--seed", str(seed)]
    command = shlex.join([*repeat, *words])
    if seed is not None and not 0 <= seed < 1 << 64:
        raise _native.InputError(f"seed = {seed}: must be 0 to 2^64 - 1")

    def simulate(path: str | None) -> tuple[str, str]:
        return _native.simulate(text, name, settings, fabric, seed, path, command)

    if messages is True:
        with tempfile.TemporaryDirectory(prefix="ethermem-") as folder:
            path = Path(folder, "messages.parquet")
            json, cdfs = simulate(str(path))
            table = pyarrow.parquet.read_table(path, memory_map=False)
        return Result.read(json, cdfs, table)
    if messages is False:
        return Result.read(*simulate(None), None)
    path = Path(messages)
    return Result.read(*simulate(str(path)), path)


def _given(
    scenario: str | os.PathLike[str] | Mapping[str, Value],
) -> tuple[str | None, str, list[str]]:
    """Return its text, unless it is a file; its name in errors; and words that repeat its run."""
    if isinstance(scenario, Mapping):
        return document(scenario), "<dict>", ["ethermem.run", "<dict>"]
    if isinstance(scenario, str) and "\n" in scenario:
        return scenario, "<text>", ["ethermem.run", "<text>"]
    name = os.fsdecode(scenario)
    return None, name, ["ethermem", "sim", name]
