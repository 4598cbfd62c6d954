#!/usr/bin/env python3
"""Measure what networks cost a program, by the clock and by waits, beside other programs.

    python3 scripts/bench_waits.py [--command target/release/ethermem] [--busy 0,4,8] [-- PROGRAM]

`ethermem emulate` runs the program with half of its memory local and delays of 5, 20 and 100 us,
alone and beside programs that only compute. The verdict (is the slowdown within 5 %?) should be the
same for all of them. By default the program looks up a dictionary of Python at random.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

LOOKUPS = """
import random
source = random.Random(3)
texts = {number: str(number) * 3 for number in range(150_000)}
print(sum(len(texts[int(source.gauss(75_000, 12_000)) % 150_000]) for _ in range(300_000)))
"""
BUSY = "while True: pass"


@contextlib.contextmanager
def beside(count: int) -> Iterator[None]:
    """Let so many programs compute meanwhile."""
    programs = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
        for program in programs:
            program.wait()


def emulate(command: str, repeats: int, program: list[str]) -> list[dict]:
    """Return the emulations of the program."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        words = [command, "emulate", "--local", "50%", "--latency-us", "5,20,100"]
        words += ["--bandwidth-gbps", "40", "--repeats", str(repeats)]
        words += ["--repeats-max", str(repeats), "--report", str(report), "--", *program]
        try:
            ended = subprocess.run(words, check=False, stdout=subprocess.DEVNULL)
        except OSError as error:
            sys.exit(f"{command}: {error.strerror}")
        if ended.returncode != 0:
            sys.exit(ended.returncode if ended.returncode > 0 else 2)
        return json.loads(report.read_text())["emulations"]


def counts(text: str) -> list[int]:
    """Parse numbers of programs."""
    parts = text.split(",")
    if not all(part.isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"{text}: must be whole numbers such as 0,4,8")
    return [int(part) for part in parts]


def shown(slowdown: dict, verdict: str) -> str:
    """Give a slowdown, its interval and what follows from it."""
    return f"{slowdown['mean']:.3f} ({slowdown['low']:.3f} to {slowdown['high']:.3f}), {verdict}"


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", default="target/release/ethermem")
    parser.add_argument("--busy", type=counts, default="0,4,8", help="programs beside it")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("program", nargs="*", default=[sys.executable, "-c", LOOKUPS])
    arguments = parser.parse_args()
    print("| network | beside | without delays, s | by the clock | by waits |")
    print("|---|---|---|---|---|")
    for count in arguments.busy:
        with beside(count):
            done = emulate(arguments.command, arguments.repeats, arguments.program)
        for emulation in done:
            counted = emulation["counted"]
            if counted is None:
                sys.exit("bench_waits.py: this kernel does not account for processors")
            cells = [
                emulation["network"],
                str(count),
                f"{emulation['undelayed_seconds']['mean']:.2f}",
                shown(emulation["slowdown"], emulation["within_5_percent"]),
                shown(counted["slowdown"], counted["within_5_percent"]),
            ]
            print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
