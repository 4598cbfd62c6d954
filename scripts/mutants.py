#!/usr/bin/env python3
"""Make mutants of the code that decides results, and find which ones the tests catch.

    python3 scripts/mutants.py [--folder DIR] [--crate NAME...] [--again] [PART...]

PART is a part of a file's name. `mutants.toml` lists the files. Every test runs once, to learn
which mutants it reaches. Then each mutant meets the tests that reach it, the fastest first, until
one fails. Outcomes are kept in `DIR/outcomes.jsonl`; `--again` retries those that were missed.
With `--crate`, only mutants of that crate are made, and only its own tests are built and run.
"""

import argparse
import concurrent.futures
import contextlib
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import mutate

ROOT = Path(__file__).resolve().parent.parent
# The model checks the rules of waiting in a workspace of its own.
MODEL = "model/tests/wait.rs"
# Folders whose tests belong to a crate, if not only its own folder.
TESTED_BY = {"pool": ["pool", "ethermem", "model"]}
COVER = str(2**32 - 2)
# Tests that take longer than this are not run for each mutant.
TEST_S_MAX = 30
# Time limit of the tests of one mutant, from their time without it.
MUTANT_S_MAX = 60
# A mutant may make a test allocate without end.
MEMORY_BYTES_MAX = 16 << 30
# Targets whose tests check the code, beside the tests in the crates themselves.
TARGETS = [
    *("node_allocations", "footprint", "node", "slow_path", "recent", "slices", "memory", "extend"),
    *("tenants", "non_interference", "transport", "virtual_network", "dissector", "seal", "store"),
    *("pool", "hostile", "programs", "killed", "claims", "executed", "uncertain", "seeds"),
    *("session", "cli", "doctor", "observe", "settings"),
]


@dataclass(frozen=True)
class Test:
    """A test of a program."""

    program: str
    folder: str
    name: str

    @property
    def key(self):
        """Return its key, which stays when its program is rebuilt."""
        return f"{Path(self.program).name.rpartition('-')[0]} {self.name}"

    def is_of(self, crate):
        """Return whether it is one of a crate's own tests."""
        folder = Path(self.folder)
        return folder.name in TESTED_BY.get(crate, [crate])


class Tree:
    """A copy of the repository with every mutant in it."""

    def __init__(self, folder, cargo_mutants, files, alone):
        # Crates whose own tests alone are built; empty for all.
        self.alone = alone
        self.root = folder / "tree"
        self.refused = folder / "refused.json"
        self.mutants = mutate.listed(cargo_mutants, ROOT, files)
        known = json.loads(self.refused.read_text()) if self.refused.exists() else {}
        for mutant in self.mutants:
            mutant.why = mutant.why or known.get(mutant.name, "")
        of_file = defaultdict(list)
        for mutant in self.mutants:
            of_file[mutant.file].append(mutant)
        self.sources = {
            file: mutate.Source((ROOT / file).read_text(encoding="utf-8"), of_file[file])
            for file in files
        }
        crates = {file.split("/")[1] for file in files}
        self.switched = {f"crates/{crate}/src/lib.rs" for crate in crates} | {MODEL}
        self.copy()

    def copy(self):
        """Update the tree to the repository's state."""
        names = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
        ).stdout.split(b"\0")
        for name in filter(None, map(os.fsdecode, names)):
            if name in self.sources:
                continue
            if not (ROOT / name).is_file():
                (self.root / name).unlink(missing_ok=True)
                continue
            text = (ROOT / name).read_bytes()
            if name in self.switched:
                switch = mutate.SWITCH.replace("COUNT", str(len(self.mutants) + 1))
                text = b"#![allow(warnings)]\n" + text + switch.encode()
            put(self.root / name, text)

    def build(self):
        """Build the tests; a mutant that does not compile is dropped. Return the test programs."""
        while True:
            for file, source in self.sources.items():
                put(self.root / file, source.written())
            programs, wrong = self.compile()
            if not wrong and (not self.alone or "pool" in self.alone):
                model, wrong = self.compile("--manifest-path", "model/Cargo.toml")
                programs += model
            if not wrong:
                return programs
            for mutant in wrong:
                mutant.why = mutant.why or "does not compile"
            self.keep()
            print(f"{len(wrong)} mutants do not compile", flush=True)

    def keep(self):
        """Record mutants that do not compile, for later runs."""
        refused = {one.name: one.why for one in self.mutants if one.why}
        self.refused.write_text(json.dumps(refused, indent=1), encoding="utf-8")

    def compile(self, *where):
        """Call Cargo once; return programs, and the mutants that errors concern."""
        cargo = os.environ.get("CARGO", "cargo")
        words = [cargo, "test", "--no-run", "--locked", "--message-format=json", *where]
        # No targets are named: tests run example programs, which are built only then.
        if not where:
            words += [] if self.alone else ["--workspace"]
            folders = [one for crate in self.alone for one in TESTED_BY.get(crate, [crate])]
            for crate in (one for one in dict.fromkeys(folders) if one != "model"):
                manifest = tomllib.loads((ROOT / "crates" / crate / "Cargo.toml").read_text())
                words += ["--package", manifest["package"]["name"]]
        ended = subprocess.run(words, cwd=self.root, stdout=subprocess.PIPE, check=False, text=True)
        programs, wrong, other = [], {}, []
        for line in ended.stdout.splitlines():
            told = json.loads(line)
            if told["reason"] == "compiler-artifact" and told["profile"]["test"]:
                is_test = "test" in told["target"]["kind"]
                wanted = self.alone or where or not is_test or told["target"]["name"] in TARGETS
                if told["executable"] and wanted:
                    manifest = Path(told["manifest_path"]).parent
                    programs.append((told["executable"], str(manifest)))
            elif told["reason"] == "compiler-message" and told["message"]["level"] == "error":
                found = self.blame(told["message"])
                wrong.update({mutant.id: mutant for mutant in found if not mutant.why})
                if not found:
                    other.append(told["message"]["rendered"])
        if ended.returncode != 0 and not wrong:
            sys.exit("the tree with mutants does not compile:\n" + "\n".join(other[:5]))
        return programs, list(wrong.values())

    def blame(self, message):
        """Return the mutants that an error concerns."""
        for span in sorted(message["spans"], key=lambda one: not one["is_primary"]):
            source = self.sources.get(span["file_name"])
            if source and (found := source.blame(span["byte_start"], span["byte_end"])):
                return found
        return []


def put(path, text):
    """Write a file, unless its content is equal: an unchanged file keeps its time."""
    if not path.exists() or path.read_bytes() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)


def limits():
    """Limit a test's resources, in the process that becomes it."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_tests(program, folder, names, mutant, limit_s, **variables):
    """Run tests of one program; return whether they passed, failed, or took too long."""
    environment = {**os.environ, **variables, "MUTANT": mutant, "CARGO_MANIFEST_DIR": folder}
    environment["PROPTEST_CASES"] = "64"
    environment.pop("CI", None)
    words = [program, "--exact", "--test-threads=1", *names]
    process = subprocess.Popen(
        words,
        cwd=folder,
        env=environment,
        preexec_fn=limits,  # noqa: PLW1509
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        code = process.wait(limit_s)
    except subprocess.TimeoutExpired:
        code = None
    # Processes that a test left behind are killed, too.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return "timeout" if code is None else "passed" if code == 0 else "failed"


class Tests:
    """The tests, the time of each, and the mutants that each reaches."""

    def __init__(self, workers, alone):
        self.workers = workers
        # True if a mutant meets only the tests of its own crate.
        self.alone = alone
        self.seconds = {}
        self.reach = defaultdict(list)
        self.lock = threading.Lock()

    def learn(self, programs, tried):
        """Run every test once that the mutants may need."""
        crates = {one.crate for one in tried}
        tests = [test for program in programs for test in names_of(*program)]
        if self.alone:
            tests = [test for test in tests if any(test.is_of(crate) for crate in crates)]
        print(f"{len(tests)} tests", flush=True)
        with concurrent.futures.ThreadPoolExecutor(self.workers) as pool:
            list(pool.map(self.cover, tests))

    def cover(self, test):
        """Run one test, and record what it reaches."""
        with tempfile.NamedTemporaryFile() as file:
            began = time.monotonic()
            outcome = run_tests(
                test.program, test.folder, [test.name], COVER, TEST_S_MAX, MUTANT_COVER=file.name
            )
            seconds = time.monotonic() - began
            found = file.read()
        if outcome != "passed":
            print(f"left out, {outcome}: {Path(test.program).stem} {test.name}", flush=True)
            return
        with self.lock:
            self.seconds[test] = seconds
            for (number,) in struct.iter_unpack("<I", found):
                self.reach[number].append(test)


def names_of(program, folder):
    """Return the tests of a program."""
    ended = subprocess.run(
        [program, "--list", "--format", "terse"],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
    )
    names = [line.removesuffix(": test") for line in ended.stdout.splitlines()]
    return [Test(program, folder, name) for name in names]


class Hunt:
    """Mutants and the tests that reach them."""

    def __init__(self, tests, outcomes, tried):
        self.tests = tests
        # For each mutant, the tests that did not catch it before.
        self.tried = tried
        self.outcomes = outcomes
        self.lock = threading.Lock()
        # For each file, the number of mutants that a test has caught: that test goes first.
        self.caught_by = defaultdict(Counter)

    def order(self, mutant):
        """Return the tests for a mutant, in the order in which they are tried."""
        known = self.caught_by[mutant.file]
        tried = self.tried.get(mutant.name, ())
        reached = {test for test in self.tests.reach[mutant.id] if test.key not in tried}
        if self.tests.alone:
            reached = {test for test in reached if test.is_of(mutant.crate)}
        first = [test for test, _ in known.most_common(5) if test in reached]
        cost = {
            test: self.tests.seconds[test] * (1 if test.is_of(mutant.crate) else 3)
            for test in reached
        }
        return first + sorted(reached - set(first), key=lambda test: cost[test])

    def hunt(self, mutant):
        """Try one mutant."""
        order = self.order(mutant)
        passed = list(self.tried.get(mutant.name, ()))
        outcome, by, spent = ("missed" if order or passed else "not reached"), "", 0.0
        for test in order:
            if spent + self.tests.seconds[test] > MUTANT_S_MAX:
                outcome = "missed in time"
                continue
            spent += self.tests.seconds[test]
            limit_s = 5 + 10 * self.tests.seconds[test]
            told = run_tests(test.program, test.folder, [test.name], str(mutant.id), limit_s)
            if told != "passed":
                outcome, by = "caught" if told == "failed" else "timeout", test.name
                self.caught_by[mutant.file][test] += 1
                break
            passed.append(test.key)
        with self.lock:
            entry = {"name": mutant.name, "file": mutant.file, "id": mutant.id}
            entry |= {"outcome": outcome, "by": by, "passed": [] if by else passed}
            print(json.dumps(entry), file=self.outcomes, flush=True)


def main():
    """Build, learn, hunt."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=ROOT / "target" / "mutants")
    parser.add_argument("--again", action="store_true", help="those alone that were missed")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--cargo-mutants", default="cargo-mutants")
    parser.add_argument(
        "--crate", action="append", default=[], help="its mutants alone, by its own tests"
    )
    parser.add_argument("part", nargs="*", help="a part of a file's name")
    asked = parser.parse_args()
    table = tomllib.loads(Path(__file__).with_name("mutants.toml").read_text(encoding="utf-8"))
    if shutil.which(asked.cargo_mutants) is None:
        sys.exit(f"{asked.cargo_mutants}: not found; `cargo install cargo-mutants --locked` has it")
    for crate in asked.crate:
        if crate not in table:
            parser.error(f"--crate {crate}: must be one of {', '.join(table)}")
    files = [
        f"crates/{crate}/src/{file}"
        for crate, those in table.items()
        for file in those
        if not asked.crate or crate in asked.crate
    ]
    asked.folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("CARGO_TARGET_DIR", str(asked.folder / "target"))
    tree = Tree(asked.folder, asked.cargo_mutants, files, asked.crate)
    programs = tree.build()
    kept = asked.folder / "outcomes.jsonl"
    lines = kept.read_text().splitlines() if kept.exists() else []
    before = {entry["name"]: entry for entry in map(json.loads, lines)}
    # A file that was changed has other mutants.
    listed = {one.name for one in tree.mutants}
    before = {n: one for n, one in before.items() if n in listed or one["file"] not in files}
    kept.write_text("".join(json.dumps(entry) + "\n" for entry in before.values()))
    tried = [one for one in tree.mutants if not one.why]
    print(f"{len(tree.mutants)} mutants, {len(tried)} tried", flush=True)
    if asked.part:
        tried = [one for one in tried if any(part in one.file for part in asked.part)]
    if asked.again:
        is_caught = ("caught", "timeout")
        tried = [one for one in tried if before.get(one.name, {}).get("outcome") not in is_caught]
    else:
        tried = [one for one in tried if one.name not in before]
    tests = Tests(asked.workers, bool(asked.crate))
    tests.learn(programs, tried)
    # A sample that grows evenly in every file.
    tried.sort(key=lambda one: (one.id * 5 % 8, one.id))
    with kept.open("a") as outcomes:
        tried_by = {name: set(entry.get("passed", ())) for name, entry in before.items()}
        hunt = Hunt(tests, outcomes, tried_by)
        with concurrent.futures.ThreadPoolExecutor(asked.workers) as pool:
            list(pool.map(hunt.hunt, tried))


if __name__ == "__main__":
    main()
