"""Experiments from Python have the command's exact output."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ethermem

POINTS = """\
[fabric]
nodes = 8
[workload]
messages = 300
[compare]
fabrics = ["edm", "cxl"]
[compare.experiments.loads]
points = ["0.3", "0.6"]
[compare.experiments.loads.vary]
workload.load = [0.3, 0.6]
"""
ONE = "[fabric]\nnodes = 8\n[workload]\nmessages = 300\n"
# The program holds some MiB, and passes over them repeatedly.
CODE = "held = bytearray(8 << 20)\nfor _ in range(3): held[::4096] = bytes(2048)"
PROGRAM = [sys.executable, "-S", "-c", CODE]


def without_time(text: str) -> str:
    """Return JSON without the one field that depends on real time."""
    kept, times = re.subn(r'"wall_s": [0-9.e-]+', "", text)
    assert times > 0
    return kept


def files(folder: Path) -> tuple[str, str]:
    page, results = (folder / name for name in ("index.html", "results.json"))
    return page.read_text(), results.read_text()


@pytest.mark.parametrize(
    ("text", "more", "flags"),
    [
        (ONE, {"fabrics": ["edm", "ideal"], "seed": 3}, ["--fabrics", "edm,ideal", "--seed", "3"]),
        (POINTS, {}, []),
        (
            POINTS,
            {"fabrics": ["cxl"], "experiments": ["loads"]},
            ["--fabrics", "cxl", "--experiment", "loads"],
        ),
    ],
)
def test_a_comparison_is_that_of_the_command(text, more, flags, call, tmp_path, monkeypatch):
    (tmp_path / "some.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    overrides = {"workload.messages": 200}
    line = ["compare", "some.toml", "--set", "workload.messages=200", *flags]
    printed = call(*line, "--format", "json").stdout
    table = call(*line, "--out", "theirs").stdout
    ours = ethermem.compare("some.toml", overrides, **more, out="ours", threads=1)
    assert without_time(ours.json) == without_time(printed)
    assert ours.text + "wrote theirs/index.html\n" == table
    assert ours.page == Path("ours/index.html")
    (page, results), (their_page, their_results) = files(Path("ours")), files(Path("theirs"))
    assert page == their_page
    assert without_time(results) == without_time(their_results)
    assert ours.results == json.loads(results)


def test_capacities_are_those_of_the_command(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = ["capacity", "--fabrics", "edm,ideal", "--workloads", "64,memcached"]
    line += ["--set", "fabric.nodes=4", "--set", "run.events_max=100000", "--seed", "5"]
    printed = call(*line, "--format", "json").stdout
    table = call(*line, "--out", "theirs").stdout
    ours = ethermem.capacity(
        {"fabric.nodes": 4, "run.events_max": 100_000},
        fabrics=["edm", "ideal"],
        workloads=[64, "memcached"],
        seed=5,
        out="ours",
        threads=1,
    )
    assert ours.json == printed
    assert ours.text + "wrote theirs/index.html\n" == table
    assert files(Path("ours")) == files(Path("theirs"))
    assert [row["fabric"] for row in ours.results] == ["edm", "ideal"] * 2
    with pytest.raises(ethermem.InputError, match='workload = "none"'):
        ethermem.capacity(workloads=["none"])


def test_a_report_is_that_of_the_command(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    figures = ["policy", "where-the-nanoseconds-go"]
    flags = [word for name in figures for word in ("--figure", name)]
    told = call("report", "--quick", *flags, "--seed", "5", "--out", "theirs").stdout
    ours = ethermem.report("ours", figures=figures, quick=True, seed=5, threads=2)
    assert ours.text + "wrote theirs/index.html\n" == told
    (page, results), (their_page, their_results) = files(Path("ours")), files(Path("theirs"))
    assert page == their_page
    assert without_time(results) == without_time(their_results)
    assert without_time(ours.json) == without_time(results)


def served(call) -> None:
    """Skip if this machine cannot serve a program's memory."""
    tried = call("run", "--local", "100%", "--", "true", check=False)
    if "userfaultfd" in tried.stderr:
        pytest.skip(tried.stderr.strip())


def test_a_study_is_that_of_the_command(call, tmp_path, monkeypatch):
    served(call)
    monkeypatch.chdir(tmp_path)
    replay = ethermem.Replay(messages=2000, seed=4)
    asked: dict[str, Any] = {
        "local": [0.25, 1.0],
        "fabrics": ["edm", "ideal"],
        "gbps": [100],
        "repeats": 1,
    }
    ours = ethermem.study(PROGRAM, "study", **asked, replay=replay)
    page, results = files(Path("study"))
    assert ours.json == results
    assert [point["fabric"] for point in ours.results["points"]] == ["edm", "ideal"]
    assert ours.results["all_local"] is not None
    # The command finds everything done, and remakes the page and the results.
    for name in ("index.html", "results.json"):
        Path("study", name).unlink()
    line = ["study", "--local", "25%,100%", "--fabrics", "edm,ideal", "--gbps", "100"]
    line += ["--repeats", "1", "--out", "study", "--messages", "2000", "--seed", "4"]
    call(*line, "--", *PROGRAM)
    assert files(Path("study")) == (page, results)
    again = ethermem.study(PROGRAM, "study", **asked, replay=replay)
    assert (again.json, again.text) == (ours.json, ours.text)


def test_a_study_tells_of_a_program_that_failed(call, tmp_path, monkeypatch):
    served(call)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ethermem.ProgramError, match="exit status: 3"):
        ethermem.study(["sh", "-c", "exit 3"], "study")
    # This process can still wait for its own children.
    assert subprocess.run(["sh", "-c", "exit 7"], check=False).returncode == 7


def line_of(call, *words: str) -> str:
    """Return the line of the command's error."""
    ended = call(*words, check=False)
    assert ended.returncode == 2
    return str(ended.stderr).removeprefix("error: ").removesuffix("\n")


def test_bad_input_has_the_line_of_the_command(call, tmp_path, monkeypatch):
    (tmp_path / "one.toml").write_text(ONE)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ethermem.InputError) as raised:
        ethermem.compare("one.toml")
    assert str(raised.value) == line_of(call, "compare", "one.toml")
    with pytest.raises(ethermem.FileError) as unwritten:
        ethermem.report("one.toml", quick=True, figures=["policy"])
    assert str(unwritten.value) == line_of(
        call, "report", "--quick", "--figure", "policy", "--out", "one.toml"
    )
    with pytest.raises(ethermem.InputError) as raised:
        ethermem.study(["true"], "study", replay=ethermem.Replay(overrides={"fabric.no": 1}))
    flags = ["--set", "fabric.no=1", "--out", "study"]
    assert str(raised.value) == line_of(call, "study", *flags, "--", "true")


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        (lambda: ethermem.compare("x.toml", fabrics=["nosuch"]), 'fabric = "nosuch": must be '),
        (ethermem.compare, "scenario and trace are None"),
        (lambda: ethermem.compare("x.toml", seed=-1), "seed = -1: must be 0 to 2^64 - 1"),
        (lambda: ethermem.report(threads=0), "threads = 0: must be 1 to 1024"),
        (lambda: ethermem.report(figures=["nosuch"]), 'figure = "nosuch": must be '),
        (lambda: ethermem.study([]), "no program is named"),
        (lambda: ethermem.study(["true"], local=[0.0]), "--local 0: must be 0.01 to 1"),
        (lambda: ethermem.study(["true"], gbps=[7]), "gbps = 7: must be one of 10, "),
        (
            lambda: ethermem.study(["true"], replay=ethermem.Replay(embed=2)),
            "--embed 2: must be 3 to 512",
        ),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(asked, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ethermem.InputError) as raised:
        asked()
    assert str(raised.value).startswith(line)
    assert "\n" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []
