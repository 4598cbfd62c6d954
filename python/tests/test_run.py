"""A run from Python equals the command's run."""

import dataclasses
import json
import math
import signal
import subprocess
import sys
import threading
import time

import pyarrow
import pyarrow.parquet
import pytest

import ethermem

SMALL = "[fabric]\nnodes = 8\n[workload]\nmessages = 500\n"


def fields(value):
    """The public fields of a result as JSON has them."""
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value) if field.name[0] != "_"]
        return {name: fields(getattr(value, name)) for name in names}
    return list(value) if isinstance(value, tuple) else value


def without_absent(value):
    """JSON omits fields that only some runs have."""
    if isinstance(value, dict):
        absent = {"rmw", "pauses", "trimmed", "returned", "program", "memories"}
        kept = {
            name: part for name, part in value.items() if part is not None or name not in absent
        }
        return {name: without_absent(part) for name, part in kept.items()}
    return value


@pytest.mark.parametrize("fabric", ethermem.FABRICS)
def test_every_field_is_that_of_the_command(fabric, call, tmp_path, monkeypatch):
    (tmp_path / "small.toml").write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    sets = ["--set", "workload.load=0.3", "--set", "workload.rmw_fraction=0.2"]
    line = ["sim", "small.toml", "--fabric", fabric, "--seed", "7", *sets, "--format", "json"]
    printed = json.loads(call(*line).stdout)
    overrides = {"workload.load": 0.3, "workload.rmw_fraction": 0.2}
    result = ethermem.run("small.toml", overrides, fabric=fabric, seed=7)
    own = result.to_dict()
    assert own["wall_s"] > 0
    # The command may have been built before a file changed, and the package after it.
    assert own["commit"].removesuffix("-dirty") == printed["commit"].removesuffix("-dirty")
    own.update(wall_s=printed["wall_s"], commit=printed["commit"])
    assert own == printed
    assert list(own) == list(printed)
    assert {**without_absent(fields(result)), **{n: own[n] for n in ("wall_s", "commit")}} == own


def test_a_scenario_is_a_file_or_text_or_a_dictionary(tmp_path):
    (tmp_path / "small.toml").write_text(SMALL)
    tables = {"fabric": {"nodes": 8}, "workload": {"messages": 500}}
    of_file, of_text, of_tables = (
        ethermem.run(scenario) for scenario in (tmp_path / "small.toml", SMALL, tables)
    )
    assert of_file.kinds == of_text.kinds == of_tables.kinds
    assert (of_file.label, of_file.scenario) == ("small", str(tmp_path / "small.toml"))
    assert (of_text.scenario, of_tables.scenario) == ("<text>", "<dict>")


def test_an_override_changes_or_takes_out_a_key():
    changed = ethermem.run(SMALL, {"workload.messages": 300, "fabric.edm.policy": "fcfs"})
    assert changed.messages_started == 300
    seeded = SMALL + "[run]\nseed = 5\n"
    assert ethermem.run(seeded).seed == 5
    assert ethermem.run(seeded, {"run.seed": None}).seed == 1
    assert ethermem.run(seeded, seed=2).seed == 2


def test_a_fabric_with_background_frames_has_them():
    result = ethermem.run(SMALL, {"background": {"load": 0.1}})
    assert result.frames is not None
    assert result.frames.sent > 0


@pytest.mark.parametrize(
    ("scenario", "more", "error", "line"),
    [
        ("gone.toml", {}, ethermem.FileError, "gone.toml: cannot be read: No such file or dir"),
        ("[fabric]\nnodes = 1\n", {}, ethermem.InputError, "<text>:2: fabric.nodes = 1: must be"),
        ({"fabric": {"nodes": 1}}, {}, ethermem.InputError, "<dict>:1: fabric.nodes = 1: must be"),
        ({}, {}, ethermem.InputError, "<dict>: empty: a scenario has at least one key"),
        ({"fabric": {8: 1}}, {}, ethermem.InputError, "8: must be keys that are text"),
        ({"fabric": object}, {}, ethermem.InputError, "fabric = <class 'object'>: must be"),
        (SMALL, {"overrides": {"fabric.nods": 3}}, ethermem.InputError, "--set: fabric.nods: unk"),
        (SMALL, {"overrides": {"a b": 3}}, ethermem.InputError, "a b=3: must be keys with"),
        (SMALL, {"fabric": "emd"}, ethermem.InputError, 'fabric = "emd": must be one of edm, '),
        (SMALL, {"seed": -1}, ethermem.InputError, "seed = -1: must be 0 to 2^64 - 1"),
        (SMALL, {"messages": "gone/m.parquet"}, ethermem.FileError, "cannot write gone/m.parquet"),
        (
            SMALL,
            {"fabric": "edm", "overrides": {"fabric.topology": "leaf-spine"}},
            ethermem.InputError,
            'fabric edm runs on fabric.topology = "single-switch" alone',
        ),
    ],
)
def test_a_failure_is_one_line_of_its_class(scenario, more, error, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error) as raised:
        ethermem.run(scenario, **more)
    assert str(raised.value).startswith(line)
    assert "\n" not in str(raised.value)
    assert issubclass(error, ethermem.EthermemError)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_a_file_error_and_leaves_nothing():
    with pytest.raises(ethermem.FileError, match="cannot write /dev/full: No space left on device"):
        ethermem.run(SMALL, messages="/dev/full")


def test_messages_come_as_tables_that_agree_with_the_result(tmp_path):
    kept = ethermem.run(SMALL, messages=True)
    written = ethermem.run(SMALL, messages=tmp_path / "m.parquet")
    table = kept.to_arrow("messages")
    assert table.equals(written.to_arrow("messages"))
    assert table.equals(pyarrow.parquet.read_table(tmp_path / "m.parquet"))
    assert table.num_rows == kept.messages_started == 500
    assert table.schema.field("finished_ps").type == pyarrow.uint64()
    frame = kept.to_pandas("messages")
    # The first and last 5 % of the messages run but are not measured.
    measured = frame[25:475]
    assert math.isclose(measured.slowdown.mean(), kept.kinds.all.slowdown_mean, rel_tol=1e-12)
    reads = measured[measured.kind == "read"]
    assert len(reads) == kept.kinds.read.messages
    assert (reads.finished_ps - reads.arrival_ps).max() / 1000 == kept.kinds.read.latency_ns_max
    with pytest.raises(ethermem.InputError, match="allowed after run"):
        ethermem.run(SMALL).to_arrow("messages")


def test_kinds_come_as_a_table():
    result = ethermem.run(SMALL, {"workload.rmw_fraction": 0.5})
    frame = result.to_pandas().set_index("kind")
    assert list(frame.index) == ["read", "write", "rmw", "all"]
    assert frame.loc["all", "messages"] == result.messages_measured
    assert frame.loc["rmw", "latency_ns_p99"] == result.kinds.rmw.latency_ns_p99
    assert list(ethermem.run(SMALL).to_pandas().kind) == ["read", "write", "all"]
    none = ethermem.run(SMALL, {"workload.read_fraction": 1.0}).to_arrow()
    assert none.column("latency_ns_mean").to_pylist()[1] is None


def test_a_distribution_ends_at_the_longest_latency():
    result = ethermem.run(SMALL)
    cdf = result.latency_cdf("write")
    assert cdf.share.iloc[-1] == 1
    assert cdf.latency_ns.iloc[-1] == result.kinds.write.latency_ns_max
    assert cdf.latency_ns.is_monotonic_increasing
    assert result.latency_cdf("rmw").empty


def test_other_threads_run_meanwhile():
    """A run that holds the interpreter's lock would let this thread count nothing."""
    ended = threading.Event()

    def simulate():
        ethermem.run(SMALL, {"workload.messages": 200_000})
        ended.set()

    thread = threading.Thread(target=simulate)
    thread.start()
    turns = 0
    while not ended.is_set():
        time.sleep(0.001)
        turns += 1
    thread.join()
    assert turns > 20


LONG = f"""
import ethermem
try:
    print("running", flush=True)
    ethermem.run({SMALL!r}, {{"workload.messages": 10**9}}, messages="m.parquet")
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_ends_a_run_and_leaves_no_file(tmp_path):
    pipe = subprocess.PIPE
    child = subprocess.Popen([sys.executable, "-c", LONG], cwd=tmp_path, stdout=pipe, text=True)
    with child:
        assert child.stdout.readline() == "running\n"
        while not list(tmp_path.iterdir()):
            assert child.poll() is None
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        sent = time.monotonic()
        assert child.stdout.readline() == "interrupted\n"
        # This is the only promise in seconds in the documentation.
        assert time.monotonic() - sent < 1
    assert child.returncode == 0
    assert list(tmp_path.iterdir()) == []
