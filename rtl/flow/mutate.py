"""Corrupts each module and shows that its tests see it: `make rtl-mutate`.

A mutant is a copy of rtl/ with one change. Every check named beside it must fail on it, by a test
or a proof and not because it does not compile. One that never ends is seen as well, if the check
passes in that time where nothing was changed. With an argument, only checks that have it in them.
"""

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from flow import tools
from flow.mutants import MUTANTS

# Of one check on one mutant, its build included.
CHECK_SECONDS = int(os.environ.get("RTL_MUTANT_SECONDS", "300"))


def ended(folder, check):
    """The exit code of a check on the RTL in a folder and what it said; no code if it hangs."""
    path, _, expression = check.partition(" -k ")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    command += [str(folder / "rtl" / path)]
    command += ["-k", expression] if expression else []
    environment = os.environ | {
        "CCACHE_DIR": os.environ.get("CCACHE_DIR", str(tools.OUT / "ccache")),
        "MODEL_ROOT": str(tools.ROOT),
        "PYTHONPATH": str(folder / "rtl"),
    }
    log = folder / "last.log"
    with (
        log.open("w", encoding="utf-8") as out,
        subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process,
    ):
        code = None
        try:
            code = process.wait(CHECK_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        finally:
            # The simulator is a child of the test, and would go on without it.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return code, log.read_text(encoding="utf-8", errors="replace")


@functools.lru_cache
def passes_unchanged(check):
    """Whether a check passes, and in time, where nothing was changed."""
    with tempfile.TemporaryDirectory(dir=runs()) as folder:
        code, _ = ended(copy(Path(folder) / "unchanged"), check)
    return code == 0


def sees(folder, check):
    """How a check fails on a mutant as it should, by a failed test or by a hang; none if not."""
    code, said = ended(folder, check)
    if code is None:
        return "by a hang" if passes_unchanged(check) else None
    compiles = "%Error" not in said and ": ERROR: " not in said
    return "by a test" if code == 1 and compiles else None


def runs():
    """Where this run has its mutants; another run at the same time has its own."""
    folder = tools.OUT / "mutants" / str(os.getpid())
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def copy(folder):
    """A copy of rtl/ and of what its tests read."""
    shutil.copytree(tools.RTL, folder / "rtl", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "golden").symlink_to(tools.GOLDEN, target_is_directory=True)
    return folder


def make(number, path, old, new):
    """A copy with one change."""
    folder = copy(runs() / f"{number:02}")
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
            if how := sees(folder, check):
                killed += 1
                print(f"killed   {path}: {new!r} {how}, {check}", flush=True)
            else:
                survived += 1
                kept = (folder / "last.log").rename(folder.with_suffix(f".{survived}.log"))
                print(f"SURVIVED {path}: {new!r}, {check}: {kept}", flush=True)
        shutil.rmtree(folder)
    if not survived:
        shutil.rmtree(runs())
    modules = {Path(path).stem for path, *_ in MUTANTS}
    print(f"{len(modules)} modules, {killed} killed, {survived} survived", flush=True)
    return 1 if survived or not killed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
