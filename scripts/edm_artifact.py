#!/usr/bin/env python3
"""Run the simulator of EDM's figure 8, with one of its rules changed at a time.

    python3 scripts/edm_artifact.py                      # the data of docs/figure8.md: hours
    python3 scripts/edm_artifact.py --only "several"     # rows whose names contain this

It takes EDM's simulator and message generator from GitHub, at one commit, and builds
them with gcc. It makes the messages of the five applications, changes the lines that EDITS names,
and prints a table of mean slowdowns. A finished run is kept in --out and not repeated.
With --ethermem, our fabrics run the same messages beside it.
"""

import argparse
import concurrent.futures
import csv
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SIMULATOR = ("https://github.com/wegul/EDM", "b9b8d3f4")
GENERATOR = ("https://github.com/wegul/EDM-tracegen", "b8c2a08c")
APPLICATIONS = ["hadoop", "spark", "sparksql", "graphlab", "memcached"]
TWO = ["hadoop", "memcached"]
LINK_GBPS = 100
SLOT_S = 64 / (LINK_GBPS * 1e9)
# Its script makes a message a read in five of eleven draws, and otherwise a write.
READS_OF_ELEVEN = 5
REQUEST_BYTES = 16
READ, WRITE = 1, 3
# The longest run takes a tenth of this.
TIMEOUT_S = 4 * 3600


@dataclass(frozen=True)
class Edit:
    """One line of a source file, and its replacement."""

    line: int
    old: str
    new: str


GRANT = "quota = pkt->reqLen;"
GRANT_MORE = "quota = ({flow}->quota > 0 ? {flow}->quota : 0) + pkt->reqLen;"
HELD = "static int64_t held_until[NODES_PER_RACK];"
CAN_SEND = (
    "(nodePFCPause[node_index][(f)->dst] == 0 && !(f)->finished"
    " && (f)->flow_size_bytes > node->seq_num[(f)->flow_id]"
    " && node->cwnd[(f)->flow_id] * BLK_SIZE"
    " > node->seq_num[(f)->flow_id] - node->last_acked[(f)->flow_id])"
)
GIVE_WAY = f"""
#define CAN_SEND(f) {CAN_SEND}
if (node->current_flow != NULL && !CAN_SEND(node->current_flow)) {{
    if (!node->current_flow->finished) buffer_put(node->active_flows, node->current_flow);
    node->current_flow = NULL;
}}
minidx = -1;
for (int j = 0; j < node->active_flows->num_elements; j++) {{
    flow_t* waits = (flow_t*)buffer_peek(node->active_flows, j);
    if (waits && CAN_SEND(waits)) {{ minidx = j; break; }}
}}
"""
TAKE_TURNS = """
else if (pkt && flow->pkts_sent % 8 == 0) {
    buffer_put(node->active_flows, flow);
    node->current_flow = NULL;
}
"""

# Edits of a fabric's source, by name of the change.
EDITS: dict[str, dict[str, list[Edit]]] = {
    "edm": {
        # A host takes a grant with less than a block left as used up.
        "every-length-ends": [Edit(318, "flow->quota < BLK_SIZE", "flow->quota <= 0")],
        # A grant of l bytes occupies both ports for l/B, whatever else is in flight.
        "ports-held": [
            Edit(47, "flowlist_t* flowlist;", f"flowlist_t* flowlist; {HELD}"),
            Edit(
                86,
                "inFlightByteNum[i] <= 2 * BLK_SIZE * per_hop_propagation_delay_in_timeslots",
                "curr_timeslot >= held_until[i]",
            ),
            Edit(
                129,
                ";",
                "; held_until[ntf->receiver] = curr_timeslot"
                " + (grant->reqLen + BLK_SIZE - 1) / BLK_SIZE;",
            ),
        ],
        # A message may be granted again while a chunk of it is in flight.
        "several-chunks": [
            Edit(115, "isGranted = 1", "isGranted = 0"),
            Edit(128, "curQuota =", "curQuota +="),
            Edit(129, "ntf->curQuota", "grant->reqLen"),
            Edit(529, GRANT, GRANT_MORE.format(flow="flow")),
            Edit(541, GRANT, GRANT_MORE.format(flow="rresp_flow")),
            Edit(566, GRANT, GRANT_MORE.format(flow="rresp_flow")),
        ],
        "to-the-end": [Edit(649, "total_flows_started >=", "num_of_flows_finished >=")],
    },
    "ird": {},
    "dctcp": {"slots-of-8-bytes": [Edit(165, "CHUNK_SIZE / 8", "BLK_SIZE")]},
    "pfc": {
        # A node takes another message while its own cannot send.
        "gives-way": [Edit(153, "if (node", f"{GIVE_WAY}if (node")],
        # The switch resumes only nodes that it has paused.
        "resumes-the-paused": [
            Edit(
                99, "&& !resumeSent", "&& nodePFCPause[net_pkt->src_node][dst_host] && !resumeSent"
            )
        ],
    },
    # Messages of a node take turns of eight blocks.
    "cxl": {"turns": [Edit(200, "}", f"}}{TAKE_TURNS}")]},
}


@dataclass(frozen=True)
class Row:
    """One row of the table: a fabric's simulator with these changes, on these messages."""

    fabric: str
    changes: tuple[str, ...] = ()
    applications: tuple[str, ...] = tuple(TWO)
    draw: int = 1

    @property
    def name(self) -> str:
        """Return the name of the run."""
        words = " and ".join(self.changes) or "as it is"
        return f"{self.fabric}: {words}" + (f", draw {self.draw}" if self.draw != 1 else "")


ROWS = [
    Row("edm", applications=tuple(APPLICATIONS)),
    Row("edm", applications=tuple(APPLICATIONS), draw=2),
    Row("ird", applications=tuple(APPLICATIONS)),
    Row("edm", ("every-length-ends",)),
    Row("edm", ("ports-held",)),
    Row("edm", ("several-chunks",)),
    Row("edm", ("every-length-ends", "ports-held")),
    Row("edm", ("every-length-ends", "several-chunks")),
    Row("edm", ("every-length-ends", "to-the-end")),
    Row("edm", ("every-length-ends", "ports-held", "several-chunks")),
    Row("dctcp"),
    Row("dctcp", ("slots-of-8-bytes",)),
    Row("pfc", applications=("hadoop", "sparksql", "memcached")),
    Row("pfc", ("gives-way",), ("hadoop", "sparksql", "memcached")),
    Row("pfc", ("resumes-the-paused",)),
    Row("cxl"),
    Row("cxl", ("turns",)),
]


class WrongError(Exception):
    """An error that the caller sees as one line."""


def run(command: list[object], cwd: Path) -> str:
    """Return a command's output."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=cwd, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no message"]
        raise WrongError(f"{' '.join(words[:3])} in {cwd} ended with {done.returncode}: {last[0]}")
    return done.stdout


def source(given: Path | None, origin: tuple[str, str], into: Path) -> Path:
    """Return a checkout of the origin's commit: the given one, or a clone."""
    url, commit = origin
    checkout = given or into
    if not checkout.exists():
        if given:
            raise WrongError(f"{given}: there is no such folder; a checkout of {url} at {commit}")
        try:
            run(["git", "clone", "--quiet", url, into], into.parent)
        except WrongError as wrong:
            raise WrongError(f"{wrong}; --simulator and --generator take checkouts") from wrong
        run(["git", "checkout", "--quiet", commit], into)
    try:
        head = run(["git", "-C", checkout.resolve(), "rev-parse", "HEAD"], checkout).strip()
    except WrongError as wrong:
        raise WrongError(f"{checkout} is no checkout of {url}") from wrong
    if not head.startswith(commit):
        raise WrongError(f"{checkout} is at {head[:8]}; the lines to change are those of {commit}")
    return checkout


def edited(text: str, file: str, edits: list[Edit]) -> str:
    """Return the source with the edits made, each exactly once."""
    lines = text.split("\n")
    for edit in edits:
        found = lines[edit.line - 1] if edit.line <= len(lines) else ""
        if found.count(edit.old) != 1:
            raise WrongError(
                f"{file}:{edit.line} has {found.strip()!r}; it must have {edit.old!r} once"
            )
        lines[edit.line - 1] = found.replace(edit.old, edit.new)
    return "\n".join(lines)


def built(row: Row, simulator: Path, out: Path) -> Path:
    """Build the simulator of the row's fabric with the row's changes."""
    program = out / "bin" / "-".join((row.fabric, *row.changes))
    tree = simulator / "netsimu"
    text = (tree / "src" / f"{row.fabric}.c").read_text()
    edits = [edit for change in row.changes for edit in EDITS[row.fabric][change]]
    copy = out / "src" / f"{program.name}.c"
    copy.parent.mkdir(parents=True, exist_ok=True)
    program.parent.mkdir(exist_ok=True)
    copy.write_text(edited(text, f"{row.fabric}.c", edits))
    mains = set(EDITS) | {"pfabric", "fastpass"}
    shared = [file for file in sorted((tree / "src").glob("*.c")) if file.stem not in mains]
    # Its memory.c is not part of its own build.
    libraries = [file for file in sorted((tree / "lib").glob("*.c")) if file.stem != "memory"]
    flags = ["-std=gnu99", "-O2", "-w", f"-I{(tree / 'include').resolve()}"]
    files = [file.resolve() for file in [copy, *shared, *libraries]]
    run(["gcc", *flags, *files, "-o", program.resolve(), "-lm", "-pthread"], out)
    return program


def generated(application: str, generator: Path, out: Path) -> Path:
    """Return the messages of its generator: number, source, destination, bytes, seconds."""
    raw = out / "messages" / f"{application}.raw.csv"
    if raw.exists():
        return raw
    program = out / "bin" / "generator"
    program.parent.mkdir(parents=True, exist_ok=True)
    if not program.exists():
        units = [
            file.resolve()
            for part in ("coresim", "ext", "run")
            for file in sorted((generator / part).glob("*.cpp"))
        ]
        run(["g++", "-std=c++11", "-O2", "-w", "-I.", *units, "-o", program.resolve()], generator)
    folder = raw.parent / application
    folder.mkdir(parents=True, exist_ok=True)
    workload = generator / "EDM-workload"
    shutil.copy(workload / f"CDF_{application}.txt", raw.parent)
    config = [sys.executable, (workload / "config_traces.py").resolve()]
    run([*config, application, LINK_GBPS, "0.4"], raw.parent)
    made = run(
        [program.resolve(), "2", f"{application}/conf-trace-{LINK_GBPS}G-0.4.txt"], raw.parent
    )
    raw.write_text(made)
    return raw


def messages(application: str, draw: int, raw: Path) -> Path:
    """Return the simulators' input, as its preprocess.py makes it, but with a seed."""
    file = raw.with_name(f"{application}-{draw}.csv")
    chance = random.Random(draw)
    with raw.open() as rows, file.open("w") as made:
        for number, src, dst, size, at in csv.reader(rows):
            slot = int(float(at) / SLOT_S)
            if chance.randint(0, 10) > 10 - READS_OF_ELEVEN:
                made.write(f"{number},{READ},{src},{dst},{REQUEST_BYTES},{size},{slot}\n")
            else:
                made.write(f"{number},{WRITE},{src},{dst},{size},-1,{slot}\n")
    return file


def measured(program: Path, file: Path, out: Path) -> float:
    """Return the mean slowdown from the simulator, or from an earlier run of the same messages."""
    what = hashlib.sha256(program.read_bytes() + file.read_bytes()).hexdigest()
    folder = out / "runs" / f"{program.name}-{file.stem}-{what[:8]}"
    log = folder / "log"
    if not log.exists():
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "out").mkdir(parents=True)
        shutil.copy(file, folder / "messages.csv")
        part = folder / "log.part"
        words = [program.resolve(), "-f", "messages.csv"]
        with part.open("w") as told:
            try:
                subprocess.run(
                    words, cwd=folder, stdout=told, stderr=told, timeout=TIMEOUT_S, check=True
                )
            except subprocess.SubprocessError as error:
                raise WrongError(f"{program.name} on {file.stem}: {error}; see {part}") from error
        part.replace(log)
    found = re.search(r"^Avg slowdown: ([0-9.]+)$", log.read_text(errors="replace"), re.M)
    if not found:
        raise WrongError(f"{log} has no mean slowdown")
    return float(found[1])


def ours(command: Path, files: dict[str, Path], out: Path) -> list[tuple[str, dict[str, float]]]:
    """Run our fabrics by the published method on the same messages."""
    text = (ROOT / "scenarios" / "figure8b.toml").read_text()
    text = text.replace("../golden", str(ROOT / "golden"))
    trace = f'kind = "trace"\ntrace_format = "edm-artifact"\ntrace = "{files["hadoop"].resolve()}"'
    text = re.sub(r"(?<=\[workload\]\n).*?(?=\n\n)", lambda _: trace, text, count=1, flags=re.S)
    points = ", ".join(f'"{file.resolve()}"' for file in files.values())
    for table in ("vary", "vary_published"):
        head = re.escape(f'[compare.experiments."application_load_0.4".{table}]\n')
        vary = f"workload.trace = [{points}]"
        text = re.sub(f"(?<={head})(?:workload.*\n)+", lambda _, v=vary: f"{v}\n", text, count=1)
    scenario = out / "figure8b.toml"
    scenario.write_text(text)
    paper = [
        "compare.published.fabrics.edm.runs=edm",
        "compare.published.fabrics.edm.whole_blocks=false",
        "fabric.transceiver_ns=0",
        "fabric.pcs_clock_ns=0.001",
        "fabric.edm.scheduler_clock_ns=0.001",
        "fabric.edm.policy=srpt-published",
    ]
    rows = []
    for name, fabric, keys in [
        ("`edm-artifact`", "edm", []),
        ("`edm-artifact`, ird", "ird", []),
        ("`edm`, policy=srpt-published", "edm", paper),
        ("and order relaxed", "edm", [*paper, "fabric.edm.order=relaxed"]),
    ]:
        sets = [word for key in keys for word in ("--set", key)]
        words = [command.resolve(), "compare", scenario.resolve(), "--method", "published"]
        shown = run([*words, "--fabrics", fabric, "--format", "json", *sets], out)
        means = [row["slowdown_mean"] for row in json.loads(shown)]
        rows.append((name, dict(zip(files, means, strict=True))))
    return rows


def table(rows: list[tuple[str, dict[str, float]]]) -> str:
    """Return the rows as Markdown."""
    lines = [f"| mean slowdown | {' | '.join(APPLICATIONS)} |", "|---" * 6 + "|"]
    for name, found in rows:
        cells = [f"{found[app]:.3f}" if app in found else "" for app in APPLICATIONS]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulator", type=Path, help="a checkout of github.com/wegul/EDM")
    parser.add_argument("--generator", type=Path, help="one of github.com/wegul/EDM-tracegen")
    parser.add_argument("--out", type=Path, default=Path("out/edm-artifact"))
    parser.add_argument("--only", default="", help="rows whose names contain this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at once")
    parser.add_argument("--ethermem", type=Path, help="the program whose fabrics run them, too")
    return parser.parse_args()


def main() -> None:
    """Make what is missing, and print the table."""
    asked = arguments()
    out = asked.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    rows = [row for row in ROWS if asked.only in row.name]
    if not rows:
        raise WrongError(
            f"--only {asked.only!r}: no row has it; " + "; ".join(row.name for row in ROWS)
        )
    simulator = source(asked.simulator, SIMULATOR, out / "EDM")
    generator = source(asked.generator, GENERATOR, out / "EDM-tracegen")
    raws = {application: generated(application, generator, out) for application in APPLICATIONS}
    files = {
        (application, draw): messages(application, draw, raw)
        for application, raw in raws.items()
        for draw in {row.draw for row in rows} | {1}
    }
    found = []
    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        for row in rows:
            program = built(row, simulator, out)
            runs = {
                application: pool.submit(measured, program, files[application, row.draw], out)
                for application in row.applications
            }
            found.append((row.name, runs))
        done = [(name, {app: run.result() for app, run in runs.items()}) for name, runs in found]
    if asked.ethermem:
        first = {application: files[application, 1] for application in APPLICATIONS}
        done += ours(asked.ethermem, first, out)
    print(table(done))


if __name__ == "__main__":
    try:
        main()
    except WrongError as wrong:
        print(f"error: {wrong}", file=sys.stderr)
        sys.exit(2)
