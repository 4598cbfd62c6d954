"""A network of nodes and a switch as one program: rtl/tb/em_system.

Its model takes minutes to compile and is the same for every bench around it, so the two are built
apart. `python -m flow.system NODES ARGUMENT...` runs it and prints what it measures; with the
variable WAVES, into whose file waves go, it is a model that has them.
"""

import os
import subprocess
import sys
from pathlib import Path

from flow import replay, sources, tools

FOLDER = tools.RTL / "tb" / "em_system"
DRIVER = [FOLDER / "main.cpp", FOLDER / "world.cpp"]
# Which modules keep code of their own.
SHARED = tools.RTL / "flow" / "build" / "system.vlt"
# The compute node, the memory node and the switch.
PAIR = 2
# Two that ask, and the memory node.
TRIPLE = 3
OPTIMISE = "-O2"
WAVES = ("--trace-fst", "--trace-structs")


def model(nodes, flags=()):
    """The folder of the compiled model of so many nodes."""
    files = [SHARED, *sources.closure("em_system")]
    name = tools.fingerprint(files, nodes, flags, OPTIMISE)
    place = tools.OUT / "build" / f"em_system-{nodes}-{name}"
    with tools.locked(place):
        if not (place / "done").exists():
            command = ["verilator", "--cc", "--build", "-j", "2", *replay.FAST, *flags]
            command += ["--top-module", "em_system", "--Mdir", "build", "-Wno-fatal"]
            command += ["-CFLAGS", "-std=c++20", "-MAKEFLAGS", tools.make_flags(OPTIMISE)]
            tools.run([*command, f"-GNodes={nodes}", *files], place, "build.log")
            (place / "done").touch()
    return place / "build"


def program(nodes, flags=()):
    """The program for so many nodes, built unless it is there."""
    built = model(nodes, flags)
    headers = [path for source in DRIVER for path in replay.included(source)]
    name = tools.digest([*DRIVER, *headers], flags)
    place = built / f"driver-{name}"
    with tools.locked(place):
        if not (place / "em_system").exists():
            include = tools.verilator_root() / "include"
            command = [tools.compiler(), "-std=gnu++20", "-O2", f"-DNODES={nodes}"]
            command += [
                f"-DVM_TRACE={int(flags == WAVES)}",
                f"-DVM_COVERAGE={int(tuple(flags) == tuple(tools.coverage_flags()) != ())}",
            ]
            command += [f"-I{built}", f"-I{include}", f"-I{include / 'vltstd'}", *DRIVER]
            command += [built / "Vem_system__ALL.a", built / "libverilated.a"]
            command += ["-pthread", "-lz", "-llz4"] if flags == WAVES else ["-pthread"]
            command.append(tools.LINKED)
            tools.run([*command, "-o", "linking"], place, "build.log")
            (place / "linking").rename(place / "em_system")
    return place / "em_system"


def run(nodes, *arguments, flags=(), stdin=""):
    """What the program measures: numbers by name. Raises with what it found to be wrong."""
    words = [str(argument) for argument in arguments]
    flags = flags or tuple(tools.coverage_flags())
    command = [program(nodes, flags), *words]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = f"{done.stdout.strip()} {done.stderr.strip()}"
        raise AssertionError(f"em_system of {nodes} nodes, {' '.join(words)}: {said}")
    return numbers(done.stdout)


def waves():
    """The flags of a model with waves, whose format needs a library."""
    if not any(Path(folder, "lz4.h").exists() for folder in ("/usr/include", "/usr/local/include")):
        raise tools.ToolMissingError("waves need lz4.h: install liblz4-dev")
    return WAVES


def main(nodes, *arguments):
    """Runs the program on this process's own standard streams; gives its exit code."""
    try:
        flags = waves() if "WAVES" in os.environ else ()
        command = [str(program(int(nodes), flags)), *arguments]
    except (AssertionError, tools.ToolMissingError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    sys.stdout.flush()
    return subprocess.run(command, check=False).returncode


def numbers(line):
    """The numbers of a line of name=value."""
    pairs = (word.split("=", 1) for word in line.split() if "=" in word)
    return {name: float(value) if "." in value else int(value) for name, value in pairs}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
