"""Builds em_scheduler around its replay bench, and makes the traces that it replays."""

import os
import shutil
import subprocess

from flow import sources, tools

TOP = "em_scheduler"
BENCH = tools.RTL / "tb" / TOP / "replay.cpp"
CHUNK_BYTES = 128
# As the traces of golden/sched, in which 4 and 16 ports have slots of two cycles.
SLOT_CYCLES = {2: 1, 4: 2, 8: 1, 16: 2}


def replay(ports):
    """The program that replays a trace, built unless it is there."""
    hierarchy = sorted((tools.RTL / "flow" / "build").glob("*.vlt"))
    files = [*hierarchy, *sources.closure(TOP), BENCH]
    place = tools.OUT / "build" / f"replay-{ports}-{tools.fingerprint(files, TOP, ports)}"
    with tools.locked(place):
        if not (place / "done").exists():
            build(ports, files, place)
    return place / "build" / f"V{TOP}"


def build(ports, files, place):
    """Builds the program."""
    slot = SLOT_CYCLES[ports]
    defines = f"-DPORTS={ports} -DSLOT_CYCLES={slot} -DCHUNK_BYTES={CHUNK_BYTES}"
    command = ["verilator", "--cc", "--exe", "--build", "-j", "2", "-O3", "--x-assign", "fast"]
    command += ["--x-initial", "fast", "--top-module", TOP, "--Mdir", "build", "-Wno-fatal"]
    command += ["-CFLAGS", f"-std=c++20 {defines}", "-MAKEFLAGS", tools.make_flags()]
    # The counter of arrivals: long enough for a soak, and keys of 64 bits are quicker than longer.
    command += [f"-GPorts={ports}", f"-GSlotCycles={slot}", f"-GChunkBytes={CHUNK_BYTES}"]
    command += ["-GTimeWidth=36", *files]
    tools.run(command, place, "build.log")
    (place / "done").touch()


def trace_command():
    """What writes a trace of the Rust model."""
    cargo = os.environ.get("CARGO", "cargo")
    if shutil.which(cargo) is None:
        raise tools.ToolMissingError("cargo is not on the path")
    command = [cargo, "run", "--quiet", "--locked", "-p", "ethermem-edm"]
    return [*command, "--example", "scheduler_trace"]


def replayed(program, stdin):
    """Replays what comes in; gives what is said and the exit code."""
    done = subprocess.run([program], stdin=stdin, capture_output=True, text=True, check=False)
    return done.stdout.strip(), done.returncode


def replay_file(program, trace):
    """Replays a trace of golden/sched."""
    with trace.open("rb") as stdin:
        return replayed(program, stdin)


def replay_model(program, *wanted):
    """Replays what the Rust model does: ports, policy, cycles and seed."""
    pipe = subprocess.PIPE
    with subprocess.Popen(trace_command(), cwd=tools.ROOT, stdin=pipe, stdout=pipe) as source:
        source.stdin.write(" ".join(str(word) for word in wanted).encode() + b"\n")
        source.stdin.close()
        said, code = replayed(program, source.stdout)
    # A replay that stops early breaks the pipe, which is its finding and not the trace's.
    if source.returncode != 0 and code == 0:
        raise AssertionError("the trace could not be made")
    return said, code
