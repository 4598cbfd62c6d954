"""Fixtures of the matrix's tests: the command, the drivers, the limits, and the count of cells."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance import drivers, limits
from conformance.pool_matrix import Result

# `make soak` asks for the complete matrix; the fast form is for every change.
IS_WHOLE = bool(os.environ.get("ETHERMEM_CONFORMANCE"))
COUNTED: list[tuple[str, int, float]] = []


@pytest.fixture(scope="session")
def command() -> Path:
    """Return the command `ethermem`, as the Rust tests build it."""
    built = drivers.TARGET / "ethermem"
    if not built.exists():
        pytest.skip(f"{built} is not built: cargo build -p ethermem-cli")
    return built


@pytest.fixture(scope="session")
def c_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the driver in C."""
    if why := drivers.missing():
        pytest.skip(why)
    return drivers.build_c(tmp_path_factory.mktemp("driver"))


@pytest.fixture(scope="session")
def all_limits(command: Path) -> dict[str, limits.Limit]:
    """Return every limit by name."""
    return limits.load(command)


@pytest.fixture
def judge(request: pytest.FixtureRequest) -> Iterator["Judge"]:
    """Return a function that takes a matrix's results, counts them, and fails on wrong ones."""
    yield Judge(request.node.name)


class Judge:
    """Counts cells and their time."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.began = time.monotonic()

    def __call__(self, result: Result) -> None:
        """Count one result."""
        COUNTED.append((self.name, result.cells, time.monotonic() - self.began))
        assert result.cells > 0
        first = "\n".join(result.wrong[:20])
        assert not result.wrong, f"{len(result.wrong)} of {result.cells} cells:\n{first}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the number of cells."""
    cells = sum(count for _, count, _ in COUNTED)
    seconds = sum(took for _, _, took in COUNTED)
    terminalreporter.write_line(f"conformance: {cells} cells, {seconds:.0f} s")
