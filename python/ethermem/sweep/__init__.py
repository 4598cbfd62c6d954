"""Sweeps: keys of a scenario varied, runs repeated over seeds, on this machine or on Ray.

It is the sweep of `ethermem sweep`: whatever runs it, the points, the journal and the file of
results are equal byte for byte. `docs/how-to/sweep.md` says how to write one.
"""

import os
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Literal, TypeAlias

import pyarrow

from .. import _native
from .._toml import Value, setting
from ..result import read_parquet

EngineName: TypeAlias = Literal["local", "ray"]

#: Yields the records of tasks as they end, in any order.
Engine: TypeAlias = Callable[[Iterator[str]], Generator[str, None, None]]


def sweep(
    file: str | os.PathLike[str],
    out: str | os.PathLike[str],
    overrides: Mapping[str, Value | None] | None = None,
    *,
    engine: EngineName = "local",
    workers: int | None = None,
    address: str | None = None,
) -> "pyarrow.Table":
    """Run a sweep, and return its results: a row per point, as `docs/how-to/sweep.md` lists them.

    Finished points are kept in a journal beside `out`. After Ctrl-C, a kill or a full disk a
    repeated call continues: only missing points run.

    Args:
        file: the sweep, a TOML file.
        out: the Parquet file of the results.
        overrides: keys that override the scenario's, for all points.
        engine: `local`, threads of this process; `ray`, tasks of a Ray cluster.
        workers: number of concurrent points, all cores by default; on Ray, the CPUs of the cluster
            that is started here if none runs.
        address: address of the Ray cluster; by default that of the variable RAY_ADDRESS, or of one
            that is started here.

    Raises:
        InputError: the sweep or another argument cannot be used.
        FileError: a file cannot be read or written.
        EthermemError: Ray gave up on a point, for example because its workers kept dying.
    """
    settings = [setting(key, value) for key, value in (overrides or {}).items()]
    with closing(_native.Sweep(file, settings, out)) as session:
        run_missing(session, engine_of(engine, workers, address), lambda _done: None)
        session.write()
    return read_parquet(Path(out))


def run_missing(session: _native.Sweep, engine: Engine, progress: Callable[[int], None]) -> None:
    """Run the points that the journal lacks; `progress` is called with its number of points."""
    missing = session.missing()
    done = session.points - len(missing)
    with closing(engine(session.task(index) for index in missing)) as records:
        for record in records:
            session.add(record)
            done += 1
            progress(done)


def engine_of(name: str, workers: int | None, address: str | None) -> Engine:
    """Return the engine with this name."""
    if workers is not None and workers < 1:
        raise _native.InputError(f"{workers} workers: must be at least 1")
    if name == "local":
        if address is not None:
            raise _native.InputError(f"address = {address!r}: allowed with the engine ray alone")
        from .on_threads import threads  # noqa: PLC0415  # Each engine brings its own libraries.

        return lambda tasks: threads(tasks, workers)
    if name == "ray":
        if address is not None and workers is not None:
            problem = f"{workers} workers: allowed without an address: a cluster has those it has"
            raise _native.InputError(problem)
        try:
            from .on_ray import ray_tasks  # noqa: PLC0415
        except ImportError as error:
            raise _native.InputError(f"engine ray: pip install 'ethermem[ray]': {error}") from error

        return lambda tasks: ray_tasks(tasks, workers, address)
    raise _native.InputError(f"engine = {name!r}: must be 'local', 'ray'")
