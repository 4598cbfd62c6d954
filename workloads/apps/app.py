"""What an application is: what it needs, how it starts under a command, what it hands back."""

import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
APPS = Path(__file__).resolve().parent
# What is made once and kept: data, built programs. `make clean` deletes it.
CACHE = ROOT / "out" / "apps"


class AppError(Exception):
    """A run that failed, in one line."""


@dataclass(frozen=True)
class Run:
    """How an application is to be run."""

    size: str
    # Put before the program, alone, that the application is about.
    under: tuple[str, ...]
    # Empty at the start, deleted at the end.
    scratch: Path
    timeout_s: float


@dataclass(frozen=True)
class Outcome:
    """What a run gave: every byte of the answer depends on the program's memory."""

    answer: str
    measured_s: float
    resident_kib_max: int


@dataclass(frozen=True)
class Debian:
    """A program of a Debian package."""

    package: str
    licence: str
    program: str

    def missing(self) -> str | None:
        """Say what is not there."""
        return None if shutil.which(self.program) else f"no program {self.program}"

    def install(self) -> None:
        """Install the package."""
        run_plain(["apt-get", "install", "--yes", "--no-install-recommends", self.package])


@dataclass(frozen=True)
class PyPi:
    """A package of PyPI, in a dependency group of pyproject.toml; and programs beside it."""

    package: str
    licence: str
    programs: tuple[str, ...] = ()

    def missing(self) -> str | None:
        """Say what is not there."""
        if importlib.util.find_spec(self.package) is None:
            return f"no Python package {self.package}"
        absent = [program for program in self.programs if not shutil.which(program)]
        return f"no program {absent[0]}" if absent else None

    def install(self) -> None:
        """Install the package into the project's environment."""
        script = str(ROOT / "scripts" / "python_env.py")
        run_plain([sys.executable, script, f"app-{self.package}", "true"])
        # That script says aloud that it could not, and ends well.
        run_plain([str(ROOT / ".venv" / "bin" / "python"), "-c", f"import {self.package}"])


@dataclass(frozen=True)
class Cargo:
    """A crate, in a program of its own that is built where it is asked for."""

    package: str
    licence: str
    folder: str

    @property
    def program(self) -> Path:
        """Where the program is built."""
        return CACHE / "target" / "release" / f"app-{self.folder}"

    def missing(self) -> str | None:
        """Say what is not there."""
        if importlib.util.find_spec("numpy") is None:
            return "no Python package numpy, which makes its data"
        return None if self.program.exists() else f"{self.package}'s program is not built"

    def install(self) -> None:
        """Build the program."""
        script = str(ROOT / "scripts" / "python_env.py")
        run_plain([sys.executable, script, "app-numpy", "true"])
        manifest = str(APPS / self.folder / "Cargo.toml")
        target = str(CACHE / "target")
        cargo = ["cargo", "build", "--release", "--locked", "--manifest-path", manifest]
        run_plain([*cargo, "--target-dir", target])


@dataclass(frozen=True)
class App:
    """One application."""

    name: str
    what: str
    package: Debian | PyPi | Cargo
    run: Callable[[Run], Outcome]


def run_plain(command: list[str]) -> None:
    """Run a command that is not limited and must succeed."""
    try:
        subprocess.run(command, check=True, stdout=sys.stderr, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError) as error:
        raise AppError(str(error)) from error


@dataclass
class Program:
    """A program that runs under the command of a [`Run`]."""

    process: subprocess.Popen[bytes]
    resident_kib_max: int = 0
    timed_out: bool = False

    def kill(self) -> None:
        """End the program and all that it started."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return

    def alive(self) -> Iterator[bool]:
        """Say, whenever asked, whether the program still runs; its end stays to be waited for."""
        while True:
            ended = os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            yield ended is None

    def time_out(self) -> None:
        """End the program because it takes too long."""
        self.timed_out = True
        self.kill()

    def wait(self) -> None:
        """Wait for the end, which must be a good one."""
        _, status, usage = os.wait4(self.process.pid, 0)
        self.resident_kib_max = usage.ru_maxrss
        code = os.waitstatus_to_exitcode(status)
        self.process.returncode = code
        if self.timed_out:
            raise AppError("the program did not end in time")
        if code < 0:
            raise AppError(f"the program was killed by {signal.Signals(-code).name}")
        if code != 0:
            raise AppError(f"the program ended with exit code {code}")


@contextmanager
def started(
    run: Run, command: Iterable[str | Path], *, environment: dict[str, str] | None = None
) -> Iterator[Program]:
    """Start a program under the run's command; standard output goes to `stdout` in its scratch.

    It is killed when the block is left while it still runs, or when the time is up.
    """
    words = [*run.under, *map(str, command)]
    with (run.scratch / "stdout").open("wb") as stdout:
        try:
            process = subprocess.Popen(
                words,
                cwd=run.scratch,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        except OSError as error:
            raise AppError(f"{words[0]}: {error.strerror}") from error
    program = Program(process)
    timer = threading.Timer(run.timeout_s, program.time_out)
    timer.start()
    try:
        yield program
    finally:
        timer.cancel()
        if process.returncode is None:
            program.kill()
            process.wait()


def run_batch(
    run: Run, command: Iterable[str | Path], *, environment: dict[str, str] | None = None
) -> tuple[str, float, int]:
    """Run a program to its end: what it printed, how long it took, its resident KiB at most."""
    begun = time.monotonic()
    with started(run, command, environment=environment) as program:
        program.wait()
    took_s = time.monotonic() - begun
    printed = (run.scratch / "stdout").read_text(encoding="utf-8", errors="replace")
    return printed, took_s, program.resident_kib_max


def run_reporting(
    run: Run, command: Iterable[str | Path], *, environment: dict[str, str] | None = None
) -> Outcome:
    """Run a program that ends with a line `answer=... measured_s=...`."""
    printed, _, resident_kib_max = run_batch(run, command, environment=environment)
    last = printed.rstrip("\n").rpartition("\n")[2]
    said = dict(word.partition("=")[::2] for word in last.split())
    try:
        return Outcome(said["answer"], float(said["measured_s"]), resident_kib_max)
    except (KeyError, ValueError) as error:
        raise AppError(f"the program's last line is {last!r}, not its answer") from error


def digest(pieces: Iterable[bytes]) -> str:
    """Shorten what is too long for a line."""
    sha = hashlib.sha256()
    for piece in pieces:
        sha.update(piece)
    return sha.hexdigest()[:32]


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """Give a file of the cache; where it is not there, `make` writes it, whole or not at all."""
    path = CACHE / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            make(part)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    return path
