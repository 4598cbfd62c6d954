"""Corrupts each module and shows that its tests see it: `make rtl-mutate`.

A mutant is a copy of rtl/ with one change. Every check named beside it must fail on it, by a test
or a proof and not because it does not compile. With an argument, only checks that have it in them.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from flow import tools
from flow.mutants import MUTANTS


def sees(folder, check):
    """Whether a check fails on a mutant as it should: a test ran and failed."""
    path, _, expression = check.partition(" -k ")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    command += [str(folder / "rtl" / path)]
    command += ["-k", expression] if expression else []
    cache = os.environ.get("CCACHE_DIR", str(tools.OUT / "ccache"))
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ
        | {
            "CCACHE_DIR": cache,
            "MODEL_ROOT": str(tools.ROOT),
            "PYTHONPATH": str(folder / "rtl"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    (folder / "last.log").write_text(done.stdout + done.stderr, encoding="utf-8")
    compiles = "%Error" not in done.stdout and ": ERROR: " not in done.stdout
    return done.returncode == 1 and compiles


def make(number, path, old, new):
    """A copy of rtl/ and of what its tests read, with one change."""
    folder = tools.OUT / "mutants" / f"{number:02}"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(tools.RTL, folder / "rtl", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "golden").symlink_to(tools.GOLDEN, target_is_directory=True)
    changed = folder / "rtl" / path
    text = changed.read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise SystemExit(f"{path}: {old!r} is there {text.count(old)} times, not once")
    changed.write_text(text.replace(old, new), encoding="utf-8")
    return folder


def main(word=""):
    """Runs the checks that have `word` in them on their mutants; gives the exit code."""
    killed, survived = 0, 0
    for number, (path, old, new, checks) in enumerate(MUTANTS):
        asked = [check for check in checks if word in check]
        if not asked:
            continue
        folder = make(number, path, old, new)
        for check in asked:
            if sees(folder, check):
                killed += 1
                print(f"killed   {path}: {new!r} by {check}", flush=True)
            else:
                survived += 1
                kept = (folder / "last.log").rename(folder.with_suffix(f".{survived}.log"))
                print(f"SURVIVED {path}: {new!r}, {check}: {kept}", flush=True)
        shutil.rmtree(folder)
    modules = {Path(path).stem for path, *_ in MUTANTS}
    print(f"{len(modules)} modules, {killed} killed, {survived} survived", flush=True)
    return 1 if survived or not killed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
