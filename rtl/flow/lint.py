"""Every module through `verilator --lint-only -Wall` and `read_slang`: warnings are errors."""

import sys
from concurrent.futures import ThreadPoolExecutor

from flow import sources, tools

# Elaborated with their parameters' defaults; a latch or a loop is an error too.
YOSYS = "read_slang -Werror --top {top} {files}; proc; select -assert-none t:$dlatch t:$_DLATCH_*;"
YOSYS += " check -assert"
# What each port of a switch has, in the widest switch that the wire's numbers of nodes allow.
WIDEST = ["-GPorts=512"]
OF_A_PORT = ["em_switch_uplink", "em_switch_downlink", "em_l2_table"]
# A host at either end of what its parameters may be.
LIMITS = {"-most": ["-GNodes=512", "-GX=8"], "-least": ["-GNodes=2", "-GX=1"]}


def verilator(top, parameters=(), place=""):
    """What Verilator has to say about a module, or nothing."""
    waivers = sorted((tools.RTL / "flow" / "lint").glob("*.vlt"))
    command = ["verilator", "--lint-only", "-Wall", "--top-module", top, *parameters]
    command += [*waivers, *sources.closure(top)]
    tools.run(command, tools.OUT / "lint" / f"{top}{place}", "verilator.log")


def widest(top):
    """What Verilator has to say about a module with the most ports, or nothing."""
    verilator(top, WIDEST, "-widest")


def most(top):
    """What Verilator has to say about a host with the most nodes and messages, or nothing."""
    verilator(top, LIMITS["-most"], "-most")


def least(top):
    """What Verilator has to say about a host with the fewest, or nothing."""
    verilator(top, LIMITS["-least"], "-least")


def slang(top):
    """What slang, and yosys after it, have to say about a module, or nothing."""
    files = " ".join(str(path) for path in sources.closure(top))
    commands = YOSYS.format(top=top, files=files)
    command = [sys.executable, tools.RTL / "flow" / "yosys.py", "-p", commands]
    tools.run(command, tools.OUT / "lint" / top, "slang.log")


def main():
    """Lints everything; gives the exit code."""
    jobs = [(check, top) for top in sorted(sources.files()) for check in (verilator, slang)]
    modules = len(jobs) // 2
    jobs += [(widest, top) for top in OF_A_PORT] + [(most, "em_host"), (least, "em_host")]
    failed = 0
    with ThreadPoolExecutor(max_workers=2) as pool:
        for (check, top), future in [(job, pool.submit(job[0], job[1])) for job in jobs]:
            try:
                future.result()
            except tools.ToolMissingError as missing:
                print(f"SKIPPED: {check.__name__} of rtl: {missing}")
                return 0
            except AssertionError as error:
                failed += 1
                print(f"{top}, {check.__name__}: {error}", file=sys.stderr)
    print(f"rtl: {len(jobs)} checks of {modules} modules, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
