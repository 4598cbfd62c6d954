"""Run one application and check its answer; `workloads/apps/run --help`."""

import argparse
import os
import shlex
import signal
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from .app import APPS, AppError, Outcome, Run
from .registry import REGISTRY

UNDER = "APPS_UNDER"
# Of a program that failed or gave a wrong answer, and of a question that was wrong.
FAILED, BAD_INPUT = 1, 2


class BadInputError(Exception):
    """A question that cannot be answered, in one line."""


def known_answers() -> dict[str, dict[str, str]]:
    """Give the answer of each application at each size."""
    return tomllib.loads((APPS / "answers.toml").read_text(encoding="utf-8"))


def parse(words: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="workloads/apps/run",
        description="Run an application that others wrote, on known data, and check its answer.",
        epilog="Prints one line of words KEY=VALUE. Exit code 1: a wrong answer, or the program "
        "failed; 2: bad input, or something is not installed.",
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="application; --list says which")
    parser.add_argument("--list", action="store_true", help="list the applications, and end")
    parser.add_argument(
        "--install", metavar="NAME", help="install what an application, or `all`, needs, and end"
    )
    parser.add_argument("--size", choices=["small", "full"], default="small")
    parser.add_argument(
        "--under",
        metavar="COMMAND",
        default=os.environ.get(UNDER, ""),
        help=f"command that is put before the program itself; by default that of {UNDER}",
    )
    parser.add_argument("--timeout-s", type=float, default=600.0, metavar="SECONDS")
    asked = parser.parse_args(words)
    if sum([asked.name is not None, asked.list, asked.install is not None]) != 1:
        parser.error("give one of NAME, --list and --install NAME")
    for name in filter(None, [asked.name, asked.install]):
        if name not in REGISTRY and asked.install != "all":
            parser.error(f"no application {name!r}; there are {', '.join(REGISTRY)}")
    if not 0 < asked.timeout_s < float("inf"):
        parser.error("--timeout-s: a number of seconds above 0")
    return asked


def show_list() -> None:
    """Print a line for each application."""
    for app in REGISTRY.values():
        missing = app.package.missing()
        state = f"not installed: {missing}" if missing else "installed"
        print(f"{app.name:18} {app.what}; {app.package.package}; {state}")


def install(name: str) -> None:
    """Install what one application, or each, needs."""
    apps = list(REGISTRY.values()) if name == "all" else [REGISTRY[name]]
    for package in dict.fromkeys(app.package for app in apps):
        package.install()


def run_app(name: str, size: str, under: tuple[str, ...], timeout_s: float) -> Outcome:
    """Run an application; the caller checks the answer."""
    with tempfile.TemporaryDirectory(prefix="apps-") as scratch:
        return REGISTRY[name].run(Run(size, under, Path(scratch), timeout_s))


def check(asked: argparse.Namespace) -> int:
    """Run the application that is asked for; print what it gave."""
    name, size = asked.name, asked.size
    if missing := REGISTRY[name].package.missing():
        raise BadInputError(f"{missing}; run with --install {name}")
    try:
        under = tuple(shlex.split(asked.under))
    except ValueError as error:
        raise BadInputError(f"--under: {error}") from error
    known = known_answers()[name]
    if size not in known:
        raise BadInputError(f"no size {size}; it has {', '.join(known)}")
    begun = time.monotonic()
    outcome = run_app(name, size, under, asked.timeout_s)
    wall_s = time.monotonic() - begun
    right = outcome.answer == known[size]
    print(
        f"app={name} size={size} verdict={'ok' if right else 'wrong'} answer={outcome.answer} "
        f"measured_s={outcome.measured_s:.3f} wall_s={wall_s:.3f} "
        f"resident_mib_max={outcome.resident_kib_max / 1024:.0f}",
        flush=True,
    )
    if not right:
        raise AppError(f"the answer is {outcome.answer}, not {known[size]}")
    return 0


def main(words: list[str]) -> int:
    """Do what the command line asks for."""
    asked = parse(words)
    try:
        if asked.list:
            show_list()
        elif asked.install:
            install(asked.install)
        else:
            return check(asked)
    except (AppError, BadInputError) as error:
        print(f"{asked.name or asked.install}: {error}", file=sys.stderr)
        return BAD_INPUT if isinstance(error, BadInputError) else FAILED
    return 0


if __name__ == "__main__":
    # An end from outside leaves no program behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
