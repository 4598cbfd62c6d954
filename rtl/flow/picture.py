"""Draws one read and one write as they pass the hardware, for docs/rtl.

Every block is in the cycle of its wave, and under them are the stages that the model measured.
`make rtl-pictures` runs the model with waves and reads those; where a block is not at the edge of
the stage that it begins or ends, nothing is drawn.
"""

import os
import subprocess
import sys
from dataclasses import dataclass

import matplotlib as mpl
import pywellen
from matplotlib import pyplot

from flow import system, tools

FOLDER = tools.ROOT / "docs" / "rtl"
BYTES = 64
PERIOD_PS = 2560
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "picture", "font.size": 8}
SYNC_DATA = 2
# Sub-types of EDM's control blocks, as they are named on the wire.
MARKS = {
    "SubStart": "/MS/",
    "SubTerminate": "/MT/",
    "SubSingle": "/MST/",
    "SubNotification": "/N/",
    "SubGrant": "/G/",
}
DATA = "/MD/"
COLOURS = {
    "/MS/": "#4c72b0",
    "/MT/": "#4c72b0",
    "/MD/": "#a9c0e0",
    "/MST/": "#8172b3",
    "/N/": "#dd8452",
    "/G/": "#55a868",
    "AR": "#937860",
    "R": "#d0b49f",
    "W": "#d0b49f",
    "data": "#c44e52",
}
NODE = "em_system.gen_nodes[{0}].u_node"
SWITCH = "em_system.u_switch"
# Lanes from the top on: name, what is sent or received, and of which node or port.
LANES = [
    ("compute: caller", "data", 0),
    ("compute: out", "node_tx", 0),
    ("compute: in", "node_rx", 0),
    ("switch, port 0: in", "port_rx", 0),
    ("switch, port 0: out", "port_tx", 0),
    ("switch, port 1: out", "port_tx", 1),
    ("switch, port 1: in", "port_rx", 1),
    ("memory: in", "node_rx", 1),
    ("memory: out", "node_tx", 1),
    ("memory: AXI4", "axi", 1),
]
# The lines between them, as lanes: who sends and who hears it.
LINES = [(1, 3), (4, 2), (5, 7), (8, 6)]
# What the memory side asks for counts from when it is offered, what comes back when it is taken.
AXI = [("AR", "arvalid_o"), ("R", "rvalid_i", "rready_o"), ("W", "wvalid_o")]
# What a stage's name says beyond its words; the rest is read as it is.
NAMED = {
    "switch_release": "queue, match, release",
    "switch_grant": "queue, match, /G/",
    "request_blocks_1": "/MS/ /MT/",
    "request_blocks_2": "/MS/ /MT/",
    "response_blocks": "blocks",
    "write_blocks": "blocks",
    "switch_forward": "forward",
    "memory": "AXI4, DRAM",
}


@dataclass
class Mark:
    """Something that passes in one cycle."""

    lane: int
    cycle: int
    kind: str


class Waves:
    """Values of signals by the cycle, before its edge."""

    def __init__(self, path):
        self.file = pywellen.Waveform(str(path))
        names = [(var.full_name, var) for var in self.file.all_vars()]
        # Vectors carry their range behind a space, and elements of arrays a point before theirs.
        self.names = {
            name.split(" ")[0].removeprefix("TOP.").replace(".[", "["): var for name, var in names
        }

    def values(self, name, cycles):
        """A signal in each of the cycles."""
        if name not in self.names:
            raise AssertionError(f"no signal {name} in the waves")
        signal = self.names[name].signal
        return [int(signal.value_at(cycle * PERIOD_PS + PERIOD_PS // 2)) for cycle in cycles]


def measured(operation, folder):
    """Runs the model; gives its stages in order, the cycle it began in, and the waves."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{operation}.fst"
    done = subprocess.run(
        [system.program(system.PAIR, system.waves()), "stages", operation, str(BYTES)],
        env=os.environ | {"WAVES": str(path)},
        capture_output=True,
        text=True,
        check=True,
    )
    numbers = system.numbers(done.stdout)
    names = list(numbers)
    return {name: numbers[name] for name in names[: names.index("blocks")]}, numbers, Waves(path)


def block_kinds():
    """The name of each sub-type, by its value."""
    rows = {row["name"]: int(row["value"], 0) for row in tools.golden_rows("constants.csv")}
    return {rows[name]: mark for name, mark in MARKS.items()}


def blocks(waves, scope, way, lane, cycles):
    """The memory blocks that pass an end of a link."""
    kinds = block_kinds()
    names = [
        f"{scope}.memory_{way}{field}" for field in (".valid", ".block.header", ".block.payload")
    ]
    valid, header, payload = (waves.values(name, cycles) for name in names)
    taken = [1] * len(valid)
    if way.startswith("tx"):
        taken = ready(waves, scope, way, cycles)
    for at, cycle in enumerate(cycles):
        if valid[at] and taken[at]:
            sub_type = payload[at] >> 8 & 0xFF
            yield Mark(lane, cycle, DATA if header[at] == SYNC_DATA else kinds[sub_type])


def ready(waves, scope, way, cycles):
    """Whether the transmitter takes a block: a bit of its own, or one of the switch's ports."""
    values = waves.values(f"{scope}.memory_ready", cycles)
    port = way.removeprefix("tx")
    return values if not port else [value >> int(port.strip("[]")) & 1 for value in values]


def channel(waves, lane, cycles, kind, *names):
    """A beat in each cycle in which all of these are high."""
    columns = [waves.values(name, cycles) for name in names]
    return [Mark(lane, c, kind) for c, *bits in zip(cycles, *columns, strict=True) if all(bits)]


def marks_of(waves, cycles):
    """Everything that passes in the cycles."""
    found = []
    for lane, (_, what, which) in enumerate(LANES):
        if what == "data":
            found += channel(waves, lane, cycles, "data", f"em_system.read_valid_o[{which}]")
        elif what == "axi":
            for kind, *names in AXI:
                wires = [f"em_system.{name}[{which}]" for name in names]
                found += channel(waves, lane, cycles, kind, *wires)
        else:
            place, way = what.split("_")
            scope = NODE.format(which) if place == "node" else SWITCH
            found += blocks(
                waves, scope, way if place == "node" else f"{way}[{which}]", lane, cycles
            )
    return found


def check(marks, stages, start):
    """Raises unless each edge of a stage is a block or a beat of the waves."""
    seen = {mark.cycle for mark in marks}
    at = start
    for name, cycles in stages.items():
        at += cycles
        # The grant queue's ends are inside of the node, on no lane.
        if at not in seen and name not in {"receive_grant", "grant_queue"}:
            raise AssertionError(f"nothing in the waves where {name} ends, in cycle {at}")


def begins(marks, lane):
    """The cycles in which units begin on a lane: all but what follows another block at once."""
    cycles = sorted(mark.cycle for mark in marks if mark.lane == lane)
    return [cycle for cycle in cycles if cycle - 1 not in cycles]


def draw(operation, stages, marks, start):
    """The picture: lanes over cycles, the stages under them."""
    whole = sum(stages.values())
    figure, axes = pyplot.subplots(figsize=(15, 5.4), layout="constrained")
    for mark in marks:
        colour = COLOURS[mark.kind]
        axes.broken_barh(
            [(mark.cycle - start, 1)],
            (-mark.lane - 0.4, 0.8),
            facecolor=colour,
            edgecolor="white",
            linewidth=0.5,
        )
        axes.text(
            mark.cycle - start + 0.5,
            -mark.lane,
            mark.kind.strip("/"),
            ha="center",
            va="center",
            fontsize=6,
            color="white" if mark.kind != DATA else "black",
        )
    for sends, hears in LINES:
        for out, came in zip(begins(marks, sends), begins(marks, hears), strict=True):
            axes.plot(
                [out - start + 0.5, came - start + 0.5],
                [-sends, -hears],
                color="#999999",
                linewidth=0.7,
                linestyle=":",
                zorder=1,
            )
    at, foot = 0, -len(LANES) - 0.2
    for index, (name, cycles) in enumerate(stages.items()):
        text = NAMED.get(name, "PCS" if name.startswith("pcs") else name.replace("_", " "))
        shade = "#eeeeee" if index % 2 else "#dddddd"
        axes.axvspan(at, at + cycles, color=shade, alpha=0.45, linewidth=0, zorder=0)
        axes.text(at + cycles / 2, foot, f"{cycles}", ha="center", va="top", fontsize=7)
        axes.text(
            at + cycles / 2,
            foot - 0.6,
            text,
            ha="right",
            va="top",
            rotation=35,
            fontsize=7,
            rotation_mode="anchor",
        )
        at += cycles
    logic = sum(value for name, value in stages.items() if not waits(name))
    axes.set_title(
        f"One {operation} of {BYTES} B alone in the network, from the waves of the RTL: {whole} "
        f"cycles of 2.56 ns, {logic} of them logic and PCS = {logic * PERIOD_PS / 1000:.2f} ns",
        loc="left",
    )
    axes.set_yticks([-lane for lane in range(len(LANES))], [name for name, _, _ in LANES])
    axes.set(xlim=(0, whole + 2), ylim=(foot - 3.2, 0.8))
    axes.set_xticks(range(0, whole + 1, 5))
    axes.xaxis.tick_top()
    axes.tick_params(length=2)
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    FOLDER.mkdir(parents=True, exist_ok=True)
    figure.savefig(FOLDER / f"{operation}.svg", metadata={"Date": None})
    pyplot.close(figure)


def waits(name):
    """Whether cycles are of a message's further blocks or of memory, not of logic."""
    return name == "memory" or "blocks" in name


def main():
    """Both pictures; gives the exit code."""
    for operation in ("read", "write"):
        try:
            stages, numbers, waves = measured(operation, tools.OUT / "pictures")
            start = numbers["start"]
            cycles = range(start, start + sum(stages.values()) + 2)
            marks = marks_of(waves, cycles)
            check(marks, stages, start)
        except (AssertionError, tools.ToolMissingError, subprocess.CalledProcessError) as error:
            print(f"error: {operation}: {error}", file=sys.stderr)
            return 1
        with mpl.rc_context(STYLE):
            draw(operation, stages, marks, start)
        print(f"drawn: docs/rtl/{operation}.svg, {len(marks)} blocks and beats")
    return 0


if __name__ == "__main__":
    sys.exit(main())
