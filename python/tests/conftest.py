"""Fixtures shared by tests: the repository, its command, and small scenarios."""

import os
import subprocess
from pathlib import Path

import pytest

# Tests send no usage statistics.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def command() -> Path:
    """Return the command `ethermem`, as the Rust tests build it."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    built = ROOT / target / "debug" / "ethermem"
    if not built.exists():
        pytest.skip(f"{built} is not built: cargo build -p ethermem-cli")
    newest = max(path.stat().st_mtime for path in (ROOT / "crates").glob("*/src/**/*.rs"))
    if built.stat().st_mtime < newest:
        pytest.fail(f"{built} is older than its sources: cargo build -p ethermem-cli")
    return built


@pytest.fixture
def call(command: Path, tmp_path: Path):  # noqa: ANN201  # A closure's type says less than it.
    """Return a function that calls the command in the test's folder."""

    def called(*arguments: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        words = [str(command), *arguments]
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=check)

    return called
