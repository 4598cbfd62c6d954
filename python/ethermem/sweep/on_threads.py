"""Points on threads of this process; the simulator runs without the interpreter's lock."""

import os
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed

from .. import _native


def threads(tasks: Iterator[str], workers: int | None) -> Generator[str, None, None]:
    """Run tasks, `workers` at once; the first failure or an interrupt ends the rest."""
    stop = _native.Stop()
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        running = [pool.submit(_native.run_task, task, stop) for task in tasks]
        try:
            for ended in as_completed(running):
                yield ended.result()
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
