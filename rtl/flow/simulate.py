"""Compiles a module with Verilator, once for each content, and runs cocotb benches on it."""

import contextlib
import os
import shutil
from pathlib import Path

from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

from flow import sources, tools

BUILD = ["--assert", "-CFLAGS", "-std=c++20", "--x-assign", "unique", *tools.coverage_flags()]


def compiled(top, parameters, folder):
    """Makes a build in `folder`, unless it is there."""
    if (folder / "done").exists():
        return
    # The runner calls make itself, which takes its variables from here.
    os.environ.update(tools.environment() | {"MAKEFLAGS": tools.make_flags()})
    runner = get_runner("verilator")
    runner.build(
        sources=sources.closure(top),
        hdl_toplevel=top,
        parameters=parameters,
        build_args=["-Wno-fatal", *BUILD],
        build_dir=folder,
        timescale=("1ns", "1ps"),
        log_file=folder / "build.log",
    )
    (folder / "done").touch()


def cocotb(top, bench, parameters=None, seed=1, environment=None):
    """Runs the cocotb tests of the Python module `bench` on `top`; raises if one fails."""
    parameters = parameters or {}
    name = tools.fingerprint(sources.closure(top), top, sorted(parameters.items()), BUILD)
    folder = tools.OUT / "build" / f"{top}-{name}"
    with tools.locked(folder):
        compiled(top, parameters, folder)
    os.environ.update(tools.environment())
    runner = get_runner("verilator")
    # The runner remembers from its own build what a later process has to say again.
    runner.hdl_toplevel, runner.hdl_toplevel_lang = top, "verilog"
    place = tools.OUT / "run" / f"{folder.name}-{bench}-{seed}-{os.getpid()}"
    shutil.rmtree(place, ignore_errors=True)
    results = place / "results.xml"
    with contextlib.suppress(SystemExit):
        runner.test(
            test_module=bench,
            hdl_toplevel=top,
            hdl_toplevel_lang="verilog",
            build_dir=folder,
            test_dir=place,
            parameters=parameters,
            seed=seed,
            results_xml=str(results),
            log_file=place / "run.log",
            extra_env={name: str(value) for name, value in (environment or {}).items()},
        )
    counted = place / "coverage.dat"
    if "RTL_COVERAGE" in os.environ and counted.exists():
        shutil.copy(counted, Path(os.environ["RTL_COVERAGE"]) / f"{place.name}.dat")
    check(results, place)


def check(results, place):
    """Raises unless some test ran and all passed."""
    ran, failed = get_results(results) if results.exists() else (0, 0)
    if failed or not ran:
        log = (place / "run.log").read_text(encoding="utf-8", errors="replace")
        tail = "\n".join(log.splitlines()[-60:])
        raise AssertionError(f"{failed} of {ran} cocotb tests failed, {place}:\n{tail}")
    shutil.rmtree(place)
