"""Synthesises what is in `synth_cases`, prints it as a table and leaves it as JSON.

Results are kept by the content of a module's sources, its parameters and this flow, so that a
second run does what changed, and what the first had no time for.
"""

import json
import math
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from flow import sources, synth_cases, synth_fit, tools

FLOW = [Path(__file__).with_name(f"{name}.py") for name in ("synth_job", "synth_cut")]
RESULTS = tools.OUT / "synth.json"
# By the clock: one of what grows with N, one of the rest, and all. What is left then waits for the
# next run.
LIMIT_S = 900
LIMIT_SINGLE_S = 300
BUDGET_S = 3480
# Gates mapped for few of them, gates mapped for a short longest path, the latter for one port and
# one pair of many, and two FPGAs.
COLUMNS = {
    "small": ["cells", "transistors", "flip_flops", "memory_bits", "levels"],
    "quick": ["cells", "transistors", "flip_flops", "memory_bits", "levels"],
    "cut": ["cells", "levels"],
    "xcup": ["lut", "flip_flops", "carry4", "lut_ram", "block_ram"],
    "ecp5": ["lut4", "flip_flops", "block_ram", "fmax_mhz"],
}


def synthesised(job, ends_at=math.inf):
    """The results of a job: from an earlier run if nothing has changed since.

    What took too long then is tried anew only where there is more time now.
    """
    name = tools.fingerprint([*sources.closure(job["top"]), *FLOW], sorted(job.items()))
    place = tools.OUT / "synth" / f"{job['top']}-{job['target']}-{name}"
    with tools.locked(place):
        limit_s = min(LIMIT_S if job["ports"] else LIMIT_SINGLE_S, ends_at - time.monotonic())
        found = kept(place)
        if found is None or found.get("unfinished_after_s", limit_s) < limit_s:
            if limit_s <= 0:
                return job | (found or {"not_begun": True})
            attempt(job, place, limit_s)
        return job | kept(place)


def kept(place):
    """What an earlier run left there, if there was one."""
    result = place / "result.json"
    return json.loads(result.read_text(encoding="utf-8")) if result.exists() else None


def attempt(job, place, limit_s):
    """Runs a job; one that takes too long has that as its result."""
    command = ["nice", sys.executable, "-m", "flow.synth_job", json.dumps(job)]
    # Place and route is a process of the job, which must end with it: a session of their own.
    with (
        (place / "job.log").open("w", encoding="utf-8") as log,
        subprocess.Popen(
            command,
            cwd=place,
            env=tools.environment(),
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as child,
    ):
        try:
            child.wait(limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            unfinished = json.dumps({"unfinished_after_s": round(limit_s)})
            (place / "result.json").write_text(unfinished, encoding="utf-8")
            return
    if child.returncode != 0:
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
            if "not_begun" in row:
                values[0] = "not begun"
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
    if not jobs:
        print(f"error: no module has {' or '.join(words)} in its name", file=sys.stderr)
        return 2
    rows, failed = [], 0
    ends_at = time.monotonic() + BUDGET_S
    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        for future in [pool.submit(synthesised, job, ends_at) for job in jobs]:
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
    waiting = sum("not_begun" in row for row in rows)
    print(f"\n{len(rows)} syntheses, {failed} failed, {cpu_s:.0f} s of processor time")
    if waiting:
        print(f"{waiting} had no time; the next run begins with them")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
