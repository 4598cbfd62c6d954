"""Points as tasks of Ray, which decides where each one runs, and reruns it if it is lost."""

import os
import signal
import socket
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import ray

from .. import _native

#: Number of retries of a task whose worker died, before the sweep ends with an error.
RETRIES_MAX = 5
#: Number of waiting tasks per CPU of the cluster: enough that no CPU becomes idle.
WAITING_PER_CPU = 4
#: Time within which the head of a cluster must accept a connection, in seconds.
REACHABLE_S = 10.0


@ray.remote(num_cpus=1, max_retries=RETRIES_MAX)  # type: ignore[untyped-decorator]
def point(task: str) -> str:
    """Run a task in a worker."""
    return _native.run_task(task)


def ray_tasks(
    tasks: Iterator[str], workers: int | None, address: str | None
) -> Generator[str, None, None]:
    """Run tasks on a cluster, which is started here if none runs.

    If this function started or joined the cluster, closing it also ends tasks in flight. If the
    program was connected before, they end by themselves. They are not cancelled: Ray aborts the
    program when a task that it cancels is just ending (ray-project/ray, pull request 54798, fixed
    half of that).
    """
    own = not ray.is_initialized()
    running: list[Any] = []
    try:
        if own:
            start(workers, address)
        room = WAITING_PER_CPU * max(1, int(ray.cluster_resources().get("CPU", 1)))
        while True:
            running += [point.remote(task) for task in islice(tasks, room - len(running))]
            if not running:
                break
            ended, running = ray.wait(running)
            yield from map(record, ended)
    finally:
        if own:
            with uninterrupted():
                ray.shutdown()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C to the end: after half a shutdown Ray chooses the program's exit code."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[Any] = []
    before = signal.signal(signal.SIGINT, lambda *now: came.append(now))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came and callable(before):
            before(*came[0])


def start(workers: int | None, address: str | None) -> None:
    """Join the cluster at `address` or of the variable RAY_ADDRESS, or start one."""
    check_reachable(address or os.environ.get("RAY_ADDRESS", ""))
    try:
        if address is None:
            ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
        else:
            ray.init(address)
    except (ConnectionError, ValueError) as error:
        line = " ".join(str(error).split())
        raise _native.InputError(f"Ray cluster {address or ''}: {line}") from error


def check_reachable(address: str) -> None:
    """Refuse the address of a host at which nothing listens: Ray would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host, int(port)), timeout=REACHABLE_S).close()
    except (OSError, OverflowError) as error:
        raise _native.InputError(f"Ray cluster {address}: {error}") from error


def record(ended: Any) -> str:  # noqa: ANN401  # Ray's references have no type without its types.
    """Return the result of a task, or raise its exception."""
    try:
        return str(ray.get(ended))
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, _native.EthermemError):
            raise error.cause from None
        # One cause is that a worker's machine has no ethermem, or another version.
        last = str(error.cause).strip().splitlines()[-1:] or [""]
        problem = f"a worker of Ray failed: {type(error.cause).__name__}: {last[0]}"
        raise _native.EthermemError(problem) from None
    except ray.exceptions.RayError as error:
        line = str(error).strip().splitlines()[0]
        problem = f"Ray gave up a point after {RETRIES_MAX} more tries: {line}"
        raise _native.EthermemError(problem) from None
