"""Sweeps from Python equal those of the command, by threads and by Ray."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow.parquet
import pytest

import ethermem
from ethermem import sweep as sweeps

BASE = "[fabric]\nnodes = 8\n[workload]\nmessages = 2000\n[run]\nseed = 3\n"
SWEEP = """\
scenario = 'base.toml'
fabrics = ['edm', 'ideal']
seeds = 2
[vary]
workload.load = {from = 0.2, to = 0.6, steps = 2}
fabric.edm.policy = ['srpt', 'fcfs']
"""
POINTS = 16


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with a sweep, which becomes the current folder."""
    (tmp_path / "base.toml").write_text(BASE)
    (tmp_path / "w.toml").write_text(SWEEP)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def cluster():
    """A local Ray cluster of two workers on this machine."""
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield ray
    ray.shutdown()


def module(*arguments, check=True):
    """Call `python -m ethermem.sweep`."""
    words = [sys.executable, "-m", "ethermem.sweep", *arguments]
    return subprocess.run(words, capture_output=True, text=True, check=check)


def lines(folder, name):
    """Number of points in a journal."""
    path = folder / f"{name}.journal"
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.fixture
def by_command(folder, call):
    """The results of the command, and its output."""
    printed = call("sweep", "w.toml", "--out", "command.parquet", "--format", "json").stdout
    return (folder / "command.parquet").read_bytes(), printed


@pytest.mark.parametrize("workers", [1, 2])
def test_threads_make_the_bytes_of_the_command(by_command, folder, workers):
    out = ["--out", "own.parquet", "--workers", str(workers), "--format", "json"]
    printed = module("w.toml", *out).stdout
    assert ((folder / "own.parquet").read_bytes(), printed) == by_command


def test_it_says_how_far_it_is_and_how_long_it_may_take(folder):
    said = module("w.toml", "--out", "own.parquet").stderr.splitlines()
    found = [re.fullmatch(r"(\d+) of 16 points, \d+ s left", line) for line in said]
    done = [int(line[1]) for line in found if line]
    assert len(done) == len(said) == 10
    assert done == sorted(done)
    assert done[-1] == POINTS


def test_ray_makes_the_bytes_of_the_command(cluster, by_command, folder):
    table = sweeps.sweep("w.toml", "ray.parquet", engine="ray")
    assert (folder / "ray.parquet").read_bytes() == by_command[0]
    assert table.num_rows == POINTS


def test_the_module_starts_a_cluster_of_two_workers(by_command, folder):
    pytest.importorskip("ray")
    out = ["--out", "ray.parquet", "--engine", "ray", "--workers", "2", "--format", "json"]
    # The cluster that another test started is not used.
    assert module("w.toml", *out).stdout == by_command[1]
    assert (folder / "ray.parquet").read_bytes() == by_command[0]


def test_a_killed_worker_s_points_run_again(cluster, call, folder):
    """Every worker that has a point is killed once, with a signal that cannot be caught."""
    longer = ["workload.messages=60000"]
    overrides = {"workload.messages": 60_000}
    call("sweep", "w.toml", "--out", "command.parquet", "--set", *longer)
    killed: set[int] = set()
    ended = threading.Event()

    def kill():
        while not ended.is_set() and len(killed) < 2:
            for pid in workers_with_a_point():
                if pid not in killed and len(killed) < 2:
                    os.kill(pid, signal.SIGKILL)
                    killed.add(pid)
            time.sleep(0.02)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        sweeps.sweep("w.toml", "ray.parquet", overrides, engine="ray")
    finally:
        ended.set()
        killer.join()
    assert len(killed) == 2
    assert (folder / "ray.parquet").read_bytes() == (folder / "command.parquet").read_bytes()
    assert lines(folder, "ray.parquet") == POINTS


def test_a_point_that_kills_every_worker_is_given_up_with_one_line(cluster, folder, monkeypatch):
    on_ray = pytest.importorskip("ethermem.sweep.on_ray")
    dies = cluster.remote(num_cpus=1, max_retries=on_ray.RETRIES_MAX)(lambda task: os._exit(7))
    monkeypatch.setattr(on_ray, "point", dies)
    with pytest.raises(ethermem.EthermemError) as error:
        sweeps.sweep("w.toml", "ray.parquet", engine="ray")
    said = str(error.value)
    assert said.startswith("Ray gave up a point after 5 more tries: "), said
    assert "\n" not in said
    assert not (folder / "ray.parquet").exists()
    # The sweep can continue, though the error's traceback still references the previous one.
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert error.traceback
    assert sweeps.sweep("w.toml", "ray.parquet", engine="ray").num_rows == POINTS


def test_a_worker_that_cannot_run_a_point_is_one_line(cluster, folder, monkeypatch):
    on_ray = pytest.importorskip("ethermem.sweep.on_ray")
    fails = cluster.remote(num_cpus=1)(lambda task: __import__("ethermem_of_another_machine"))
    monkeypatch.setattr(on_ray, "point", fails)
    line = "^a worker of Ray failed: ModuleNotFoundError: No module named '\\w*'$"
    with pytest.raises(ethermem.EthermemError, match=line):
        sweeps.sweep("w.toml", "ray.parquet", engine="ray")
    assert not (folder / "ray.parquet").exists()


def test_an_interrupt_waits_for_the_end_of_a_shutdown():
    on_ray = pytest.importorskip("ethermem.sweep.on_ray")
    done = []
    with pytest.raises(KeyboardInterrupt), on_ray.uninterrupted():
        signal.raise_signal(signal.SIGINT)
        done.append("the rest")
    assert done == ["the rest"]
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_cluster_that_is_not_there_is_one_line(folder):
    pytest.importorskip("ray")
    words = ["--out", "ray.parquet", "--engine", "ray", "--address", "127.0.0.1:9"]
    called = module("w.toml", *words, check=False)
    last = called.stderr.splitlines()[-1]
    assert (called.returncode, called.stdout) == (2, "")
    assert last.startswith("error: Ray cluster 127.0.0.1:9: "), called.stderr
    assert "Traceback" not in called.stderr
    assert not (folder / "ray.parquet").exists()


def workers_with_a_point():
    """Processes of this machine that Ray names after the task that they run."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            title = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if title.startswith(b"ray::point"):
            found.append(int(process.name))
    return found


def test_a_killed_sweep_goes_on_and_ends_in_the_same_bytes(by_command, folder):
    words = [sys.executable, "-m", "ethermem.sweep", "w.toml", "--out", "own.parquet"]
    kept = 0
    for ended_by in (signal.SIGKILL, signal.SIGINT):
        child = subprocess.Popen([*words, "--workers", "1"], stderr=subprocess.PIPE, text=True)
        with child:
            while lines(folder, "own.parquet") == kept and child.poll() is None:
                time.sleep(0.001)
            child.send_signal(ended_by)
            sent = time.monotonic()
            said = child.stderr.read()
        assert time.monotonic() - sent < 1
        assert kept < lines(folder, "own.parquet") < POINTS
        kept = lines(folder, "own.parquet")
        assert not (folder / "own.parquet").exists()
    assert child.returncode == 130
    line = "interrupted; finished points are kept in own.parquet.journal: the same command goes on"
    assert said.splitlines()[-1] == line
    again = module("w.toml", "--out", "own.parquet", "--format", "json")
    assert again.stderr.startswith(f"{kept} of {POINTS} points are there already\n")
    assert ((folder / "own.parquet").read_bytes(), again.stdout) == by_command
    assert lines(folder, "own.parquet") == POINTS


def test_an_interrupted_sweep_on_ray_goes_on_by_the_command(by_command, call, folder):
    """One engine continues what another has finished in part."""
    pytest.importorskip("ray")
    words = [sys.executable, "-m", "ethermem.sweep", "w.toml", "--out", "ray.parquet"]
    words += ["--engine", "ray", "--workers", "1"]
    child = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    with child:
        while lines(folder, "ray.parquet") == 0 and child.poll() is None:
            time.sleep(0.001)
        child.send_signal(signal.SIGINT)
        said = child.stderr.read()
    assert child.returncode in (0, 130), said
    kept = lines(folder, "ray.parquet")
    again = call("sweep", "w.toml", "--out", "ray.parquet", "--format", "json")
    assert again.stderr.startswith(f"{kept} of {POINTS} points are there already\n")
    assert ((folder / "ray.parquet").read_bytes(), again.stdout) == by_command


#: Runs the module where the file system has room for only 2 KiB per file. Ray's own processes are
#: not limited.
FULL_DISK = """\
import resource, runpy, sys
if "ray" in sys.argv:
    import ray
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
resource.setrlimit(resource.RLIMIT_FSIZE, (2048, resource.RLIM_INFINITY))
runpy.run_module("ethermem.sweep", run_name="__main__")
"""


@pytest.mark.parametrize("engine", ["local", "ray"])
def test_a_full_disk_is_one_line_and_the_sweep_goes_on_after_it(by_command, folder, engine):
    if engine == "ray":
        pytest.importorskip("ray")
    words = ["w.toml", "--out", "full.parquet", "--engine", engine, "--format", "json"]
    full = [sys.executable, "-c", FULL_DISK, *words]
    ended = subprocess.run(full, capture_output=True, text=True, check=False)
    line = "error: cannot write full.parquet.journal: File too large (os error 27)"
    # Ray's driver, in this process, may report that its own log file is full, and that points in
    # flight ended with it.
    errors = [said for said in ended.stderr.splitlines() if said.startswith("error:")]
    assert (ended.returncode, errors) == (2, [line]), ended.stderr
    assert "Traceback" not in ended.stderr
    kept = lines(folder, "full.parquet")
    assert 0 < kept < POINTS
    assert not (folder / "full.parquet").exists()
    again = module(*words[:3])
    assert again.stderr.startswith(f"{kept} of {POINTS} points are there already\n")
    assert (folder / "full.parquet").read_bytes() == by_command[0]


def test_columns_are_read_back_as_they_were_printed(by_command, folder):
    table = pyarrow.parquet.read_table(folder / "command.parquet")
    summaries = json.loads(by_command[1])
    assert table.num_rows == POINTS == sum(len(summary["seeds"]) for summary in summaries)
    rows = table.to_pylist()
    assert [row["seed"] for row in rows[:2]] == summaries[0]["seeds"] == [3, 4]
    for at, row in enumerate(rows):
        summary = summaries[at // 2]
        assert row["fabric"] == summary["fabric"]
        assert row["workload.load"] == float(summary["settings"]["workload.load"])
        assert row["fabric.edm.policy"] == summary["settings"]["fabric.edm.policy"]
        for name, printed in summary["metrics"].items():
            estimate = printed or {"mean": None, "ci95_half_width": None}
            assert row[f"{name}_seeds_mean"] == estimate["mean"]
            assert row[f"{name}_seeds_ci95_half_width"] == estimate["ci95_half_width"]
    first = ethermem.run("base.toml", {"workload.load": 0.2, "fabric.edm.policy": "srpt"})
    assert rows[0]["slowdown_p99"] == first.kinds.all.slowdown_p99
    assert rows[0]["latency_ns_mean"] == first.kinds.all.latency_ns_mean


@pytest.mark.parametrize(
    ("sweep", "more", "code", "line"),
    [
        (SWEEP.replace("['srpt', 'fcfs']", "[]"), [], 2, "w.toml:6: vary.fabric.edm.policy: an em"),
        (SWEEP.replace("'ideal'", "'idle'"), [], 2, "w.toml:2: fabrics = ['edm', 'idle']: must be"),
        ("scenario = 'gone.toml'\n", [], 2, "gone.toml: cannot be read: No such file"),
        (SWEEP, ["--out", "gone/r.parquet"], 2, "cannot write gone/r.parquet.journal: No such"),
        (SWEEP, ["--out", "/dev/null"], 2, "/dev/null: must be the name of a file"),
        (SWEEP, ["--engine", "rey"], 2, "engine = 'rey': must be 'local', 'ray'"),
        (SWEEP, ["--workers", "0"], 2, "0 workers: must be at least 1"),
        (SWEEP, ["--address", "here"], 2, "address = 'here': allowed with the engine ray alone"),
        (
            SWEEP,
            ["--engine", "ray", "--address", "here", "--workers", "2"],
            2,
            "2 workers: allowed without an address",
        ),
        (SWEEP, ["--set", "workload.load=0.5"], 2, "w.toml:5: vary.workload.load: --set sets it"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(folder, sweep, more, code, line):
    (folder / "w.toml").write_text(sweep)
    out = [] if "--out" in more else ["--out", "r.parquet"]
    called = module("w.toml", *out, *more, check=False)
    assert (called.returncode, called.stdout) == (code, "")
    assert called.stderr.startswith(f"error: {line}"), called.stderr
    assert called.stderr.count("\n") == 1
    assert sorted(path.name for path in folder.iterdir()) == ["base.toml", "w.toml"]


def test_a_failure_in_a_worker_is_the_same_line(cluster, folder):
    """Only the run detects a trace with a damaged end."""
    (folder / "t.csv").write_text("arrival_ns,kind,compute,memory,bytes\n0,read,0,1,64\n1,read,0\n")
    trace = "[fabric]\nnodes = 8\n[workload]\nkind = 'trace'\ntrace = 't.csv'\n"
    (folder / "base.toml").write_text(trace)
    (folder / "w.toml").write_text("scenario = 'base.toml'\n")
    lines = []
    for engine in ("local", "ray"):
        with pytest.raises(ethermem.InputError) as raised:
            sweeps.sweep("w.toml", f"{engine}.parquet", engine=engine)
        lines.append(str(raised.value))
    assert lines[0].replace(f"{folder}/", "") == lines[1].replace(f"{folder}/", "")
    assert "t.csv:3: " in lines[0]
    assert "\n" not in lines[0]


def test_one_sweep_at_a_time_writes_a_journal(folder):
    from ethermem import _native  # noqa: PLC0415

    session = _native.Sweep("w.toml", [], "r.parquet")
    with pytest.raises(ethermem.FileError, match="another sweep writes it"):
        sweeps.sweep("w.toml", "r.parquet")
    with pytest.raises(ethermem.InputError, match="not a record of a point"):
        session.add("{}")
    with pytest.raises(ethermem.InputError, match="not a task of a sweep"):
        _native.run_task("{}")
    with pytest.raises(IndexError):
        session.task(POINTS)
    session.close()
    with pytest.raises(ValueError, match="the sweep is closed"):
        session.missing()
