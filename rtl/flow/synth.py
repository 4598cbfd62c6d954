"""Synthesises what is in `synth_cases`, prints it as a table and leaves it as JSON.

Results are kept by the content of a module's sources, its parameters and this flow, so that a
second run does what changed.
"""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from flow import sources, synth_cases, synth_fit, tools

FLOW = [Path(__file__), Path(__file__).with_name("synth_job.py")]
RESULTS = tools.OUT / "synth.json"
# No more than so long for one of them, by the clock.
LIMIT_S = 1200
# Gates mapped for few of them, gates mapped for a short longest path, and two FPGAs.
COLUMNS = {
    "small": ["cells", "transistors", "flip_flops", "memory_bits", "levels"],
    "quick": ["cells", "transistors", "flip_flops", "memory_bits", "levels"],
    "xcup": ["lut", "flip_flops", "carry8", "lut_ram", "block_ram"],
    "ecp5": ["lut4", "flip_flops", "block_ram", "fmax_mhz"],
}


def synthesised(job):
    """The results of a job: from an earlier run if nothing has changed since."""
    name = tools.fingerprint([*sources.closure(job["top"]), *FLOW[1:]], sorted(job.items()))
    place = tools.OUT / "synth" / f"{job['top']}-{job['target']}-{name}"
    with tools.locked(place):
        if not (place / "result.json").exists():
            attempt(job, place)
        return job | json.loads((place / "result.json").read_text(encoding="utf-8"))


def attempt(job, place):
    """Runs a job; one that takes too long has that as its result."""
    command = ["nice", sys.executable, "-m", "flow.synth_job", json.dumps(job)]
    with (place / "job.log").open("w", encoding="utf-8") as log:
        try:
            done = subprocess.run(
                command,
                cwd=place,
                env=tools.environment(),
                stdout=log,
                stderr=subprocess.STDOUT,
                timeout=LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            unfinished = json.dumps({"unfinished_after_s": LIMIT_S})
            (place / "result.json").write_text(unfinished, encoding="utf-8")
            return
    if done.returncode != 0:
        tail = (place / "job.log").read_text(encoding="utf-8", errors="replace").splitlines()[-20:]
        raise AssertionError(f"{job['top']} for {job['target']}, {place}:\n" + "\n".join(tail))


def table(rows, target):
    """The rows of a target as lines of text."""
    columns = ["module", "N", *COLUMNS[target]]
    body = [columns]
    for row in rows:
        if row["target"] == target:
            values = [row.get(column, "") for column in COLUMNS[target]]
            if "unfinished_after_s" in row:
                values[0] = f"not in {row['unfinished_after_s']} s"
            if "not_placed" in row:
                values[-1] = "not placed"
            body.append([row["top"], row["ports"] or "", *values])
    texts = [[f"{v:,}" if isinstance(v, int) else str(v) for v in line] for line in body]
    widths = [max(len(line[at]) for line in texts) for at in range(len(columns))]
    return [
        "  ".join(
            text.ljust(w) if at == 0 else text.rjust(w)
            for at, (text, w) in enumerate(zip(line, widths, strict=True))
        )
        for line in texts
    ]


def main(*words):
    """Synthesises those with one of the words in their name, or all; gives the exit code."""
    jobs = [
        job for job in synth_cases.all_jobs() if not words or any(w in job["top"] for w in words)
    ]
    rows, failed = [], 0
    with ThreadPoolExecutor(max_workers=2) as pool:
        for future in [pool.submit(synthesised, job) for job in jobs]:
            try:
                rows.append(future.result())
            except AssertionError as error:
                failed += 1
                print(error, file=sys.stderr)
    rows.sort(key=lambda row: (row["top"], row["ports"] or 0))
    fits = synth_fit.all_fits(rows)
    if not words:
        RESULTS.write_text(json.dumps({"rows": rows, "fits": fits}, indent=1), encoding="utf-8")
    for target in COLUMNS:
        print(f"\n{target}", *table(rows, target), sep="\n")
    print("", *synth_fit.lines(fits), sep="\n")
    cpu_s = sum(row.get("cpu_s", 0) for row in rows)
    print(f"\n{len(rows)} syntheses, {failed} failed, {cpu_s:.0f} s of processor time")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
