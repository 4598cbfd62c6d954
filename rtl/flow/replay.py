"""Builds modules around replay benches, and replays what the Rust model does in them."""

import os
import re
import shutil
import subprocess

from flow import sources, tools

FAST = ["-O3", "--x-assign", "fast", "--x-initial", "fast"]
FLAGS = ["--cc", "--exe", "--build", "-j", "2", *FAST, *tools.coverage_flags()]


def program(top, bench, parameters=None, defines=None, before=()):
    """The program of `bench` around `top`, built unless it is there; `before` goes first."""
    files = [*before, *sources.closure(top), bench]
    headers = included(bench)
    words = sorted((parameters or {}).items()), sorted((defines or {}).items())
    name = tools.fingerprint([*files, *headers], top, *words, *tools.coverage_flags())
    place = tools.OUT / "build" / f"replay-{top}-{name}"
    with tools.locked(place):
        if not (place / "done").exists():
            command = ["verilator", *FLAGS, "--top-module", top, "--Mdir", "build", "-Wno-fatal"]
            given = " ".join(f"-D{key}={value}" for key, value in (defines or {}).items())
            command += ["-CFLAGS", f"-std=c++20 {given}", "-MAKEFLAGS", tools.make_flags()]
            command += [f"-G{key}={value}" for key, value in (parameters or {}).items()]
            tools.run([*command, *files], place, "build.log")
            (place / "done").touch()
    return place / "build" / f"V{top}"


def included(source, known=()):
    """The headers of this repository that a source includes, and those that they do."""
    found = list(known)
    for name in re.findall(r'#include "([^"]+)"', source.read_text(encoding="utf-8")):
        path = (source.parent / name).resolve()
        if path.exists() and path not in found:
            found = included(path, [*found, path])
    return found


def model(example, crate="ethermem-edm"):
    """What runs an example of a crate, which writes a trace of the Rust model."""
    cargo = os.environ.get("CARGO", "cargo")
    if shutil.which(cargo) is None:
        raise tools.ToolMissingError("cargo is not on the path")
    return [cargo, "run", "--quiet", "--locked", "-p", crate, "--example", example]


def replayed(program, stdin, *arguments):
    """Replays what comes in; gives what is said and the exit code."""
    command = [program, *(str(argument) for argument in arguments)]
    done = subprocess.run(command, stdin=stdin, capture_output=True, text=True, check=False)
    return done.stdout.strip(), done.returncode


def replay_model(program, example, wanted, *arguments, crate="ethermem-edm"):
    """Replays what the Rust model does when asked for `wanted`."""
    pipe = subprocess.PIPE
    # A mutant of rtl/ is compared with the model where that is.
    root = os.environ.get("MODEL_ROOT", tools.ROOT)
    with subprocess.Popen(model(example, crate), cwd=root, stdin=pipe, stdout=pipe) as source:
        source.stdin.write(" ".join(str(word) for word in wanted).encode() + b"\n")
        source.stdin.close()
        said, code = replayed(program, source.stdout, *arguments)
    # A replay that stops early breaks the pipe, which is its finding and not the trace's.
    if source.returncode != 0 and code == 0:
        raise AssertionError("the trace could not be made")
    return said, code
