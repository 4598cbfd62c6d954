"""Every command by every condition, generated from what clap knows of the commands.

No value, stream or node may make a command panic, be killed by a signal, wait for ever, or say
that all is well where something was lost.
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

DOCUMENTED = {0, 1, 2, 130}
# A program that cannot be started ends `run` and similar commands with a shell's exit code.
OF_PROGRAMS = {126, 127}
LINES_MAX = 12
# A command that still runs after this time in seconds, such as a server, has not failed.
RUNS_S = 60 if os.environ.get("ETHERMEM_COMMANDS") == "whole" else 2
NOBODY = 65534


@pytest.fixture(scope="module")
def tree(command: Path):
    said = subprocess.run([command, "command-tree"], capture_output=True, check=True)
    entries = [entry for entry in json.loads(said.stdout) if not entry["is_group"]]
    assert len(entries) > 15
    return entries


def ended(words, *, folder, timeout=RUNS_S, **more):
    """Run a command, and return its code (None if it still ran), and its output."""
    running = subprocess.Popen(
        words,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=more.pop("stdout", subprocess.PIPE),
        stderr=more.pop("stderr", subprocess.PIPE),
        start_new_session=True,
        **more,
    )
    try:
        _, said = running.communicate(timeout=timeout)
        return running.returncode, said or b""
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        _, said = running.communicate()
        return None, said or b""


def wrong(words, code, said, allowed=frozenset()):
    """Say what is wrong with an exit, if anything is."""
    text = said.decode(errors="replace")
    if "panicked at" in text or code == 101:
        return f"{words}: panicked: {text[:300]}"
    if code is not None and code not in DOCUMENTED | OF_PROGRAMS | set(allowed):
        return f"{words}: exit code {code}: {text[:300]}"
    # Usage that is printed because nothing was given may be long.
    if code == 2 and "Usage:" not in text and text.count("\n") > LINES_MAX:
        return f"{words}: {text.count(chr(10))} lines: {text[:300]}"
    return None


def checked(cases):
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [problem for problem in pool.map(lambda case: case(), cases) if problem]


def arguments(tree):
    """Return every argument that takes a value, with its command."""
    return [
        (entry, argument)
        for entry in tree
        for argument in entry["arguments"]
        if argument["value"] is not None
    ]


def is_path(argument):
    words = ("FILE", "PATH", "DIR", "FOLDER", "SCENARIO", "TRACE", "SWEEP")
    return any(word in argument["value"] for word in words)


def given(argument, value):
    flag = argument["flag"]
    return [value] if flag is None else [flag.encode() + b"=" + value]


def filled(entry, without, folder):
    """Return the required arguments of a command, except one argument."""
    words = []
    for argument in entry["arguments"]:
        if argument["is_required"] and argument is not without and argument["value"] is not None:
            value = argument["values"][0] if argument["values"] else plausible(argument, folder)
            words += given(argument, value.encode())
    return words


def plausible(argument, folder):
    if "URL" in argument["value"]:
        return "local:"
    if any(word in argument["value"] for word in ("FILE", "PATH", "DIR", "FOLDER")):
        return str(folder / "file")
    return "1"


@pytest.fixture
def place(tmp_path):
    (tmp_path / "file").write_text("nonsense\n")
    (tmp_path / "folder").mkdir()
    return tmp_path


VALUES = {
    "not UTF-8": b"\xff\xfe",
    "not UTF-8 in a file's name": b"folder/\xff.toml",
    "empty": b"",
    "missing": b"no/such/file",
    "a folder": b"folder",
    "nonsense": b"file",
    "huge": b"9" * 5000,
    "a long name": b"n" * 250,
    "a longer name than there can be": b"n" * 300,
    "endless": b"/dev/zero",
}


NO_INPUT = {"missing", "a folder", "nonsense", "not UTF-8 in a file's name", "endless"}


def is_input(argument):
    return is_path(argument) and (argument["flag"] is None or argument["flag"] in INPUTS)


@pytest.mark.parametrize("condition", VALUES)
def test_no_value_is_too_strange(command, tree, place, condition):
    value = VALUES[condition]

    def case(entry, argument):
        words = [*entry["command"], *filled(entry, argument, place)]
        words = [command, *words, *given(argument, value)]

        def run():
            code, said = ended(words, folder=place)
            if code == 0 and condition in NO_INPUT and is_input(argument):
                return f"{words}: exit code 0, and there is no such input"
            if code is None and condition == "endless" and is_input(argument):
                return f"{words}: still reads after {RUNS_S} s"
            return wrong(words, code, said)

        return run

    cases = [case(entry, argument) for entry, argument in arguments(tree)]
    assert len(cases) > 100
    assert checked(cases) == []


@pytest.fixture
def open_place():
    """Make a folder that other users may enter."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        (place / "file").write_text("nonsense\n")
        (place / "file").chmod(0o600)
        yield place


@pytest.mark.skipif(os.geteuid() != 0, reason="files of other users need root")
def test_what_may_not_be_read_is_said(command, tree, open_place):
    ours = open_place / "ethermem"
    shutil.copy(command, ours)

    def case(entry, argument):
        words = [*entry["command"], *filled(entry, argument, open_place)]
        words = [ours, *words, *given(argument, b"file")]

        def run():
            code, said = ended(words, folder=open_place, user=NOBODY, group=NOBODY)
            return wrong(words, code, said) or (f"{words}: exit code 0" if code == 0 else None)

        return run

    cases = [case(entry, argument) for entry, argument in arguments(tree) if is_path(argument)]
    assert len(cases) > 20
    assert checked(cases) == []


# Commands that succeed with one output file or folder, by the flag that names it.
SUCCEEDS = {
    ("sim", "--messages"): ["good.toml"],
    ("sim", "--perfetto"): ["good.toml"],
    ("compare", "--out"): ["good.toml", "--fabrics", "edm"],
    ("capacity", "--out"): ["--fabrics=ideal", "--workloads=64", "--set=fabric.nodes=2"],
    ("sweep", "--out"): ["sweep.toml"],
    ("workload generate", "--out"): ["good.toml", "--trace-format", "csv"],
    ("keygen", "--out"): [],
    ("replay", "--out"): ["trace.parquet", "--fabric", "ideal", "--messages", "100"],
    ("bench ycsb", "--out"): ["plan.toml"],
    ("man", "--out"): [],
}
# Reports of programs, which run first; for them the device is full as a limit would be the
# program's, too.
REPORTS = {
    ("run", "--report"): [],
    ("rack run", "--report"): ["--config", "rack.toml"],
    ("profile", "--report"): [],
    ("emulate", "--report"): ["--latency-us", "1", "--repeats", "1"],
}
# These write their output by functions that other commands share, and take minutes.
TAKES_LONG = {
    ("report", "--out"),
    ("study", "--out"),
    ("emulate", "--out"),
    ("profile", "--out"),
    ("latency", "--fst"),
    ("rtl ycsb", "--fst"),
    # The command is refused whatever it names.
    ("compare", "--perfetto"),
    ("compare", "--messages"),
}
INPUTS = {
    "--trace",
    "--disk-trace",
    "--network-trace",
    "--latency-from",
    "--config",
    "--control",
    "--key",
    "--offload",
    "--rtl",
    "--password-file",
    "--tls-cert",
    "--tls-key",
    "--tls-client-ca",
}


@pytest.fixture
def inputs(place, root):
    (place / "good.toml").write_text("[workload]\nmessages = 200\n")
    sweep = 'scenario = "good.toml"\nfabrics = ["ideal"]\n[vary]\nworkload.load = [0.5]\n'
    (place / "sweep.toml").write_text(sweep)
    plan = [
        "[figure]",
        'name = "plan"',
        'title = "One point"',
        'shows = "latency"',
        "seeds = 1",
        "[ycsb]",
        'workload = "A"',
        "records = 10",
        "operations = 20",
        "[[pool]]",
        'name = "ideal"',
        'url = "sim:ideal?nodes=2"',
        "[[point]]",
        'name = "one"',
    ]
    (place / "plan.toml").write_text("\n".join(plan))
    shutil.copy(root / "workloads" / "traces" / "sqlite.parquet", place / "trace.parquet")
    return place


def nothing_may_be_written():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def test_every_output_is_known(tree):
    files = {
        (" ".join(entry["command"]), argument["flag"])
        for entry, argument in arguments(tree)
        if argument["flag"] and is_path(argument)
    }
    outputs = {(name, flag) for name, flag in files if flag not in INPUTS}
    assert outputs == SUCCEEDS.keys() | REPORTS.keys() | TAKES_LONG


@pytest.mark.parametrize(("name", "flag"), SUCCEEDS)
def test_an_output_that_cannot_be_written_is_no_success(command, inputs, name, flag):
    words = [command, *name.split(), *SUCCEEDS[name, flag], flag]
    code, said = ended([*words, "whole"], folder=inputs, timeout=60)
    assert code == 0, said
    code, said = ended(
        [*words, "lost"], folder=inputs, timeout=60, preexec_fn=nothing_may_be_written
    )
    assert code == 2, said
    assert wrong(words, code, said) is None
    assert b"error: " in said
    # No partial result remains.
    assert not (inputs / "lost").exists()


@pytest.mark.parametrize(("name", "flag"), SUCCEEDS)
def test_a_file_may_have_any_name(command, inputs, name, flag):
    def renamed(word):
        if not (inputs / word).is_file():
            return word.encode()
        strange = b"\xff" + word.encode()
        shutil.copy(inputs / word, os.fsencode(inputs) + b"/" + strange)
        return strange

    words = [command, *name.split(), *map(renamed, SUCCEEDS[name, flag]), flag, b"\xfe"]
    code, said = ended(words, folder=inputs, timeout=60)
    assert code == 0, said
    assert (inputs / os.fsdecode(b"\xfe")).exists()


@pytest.mark.parametrize(("name", "flag"), REPORTS)
def test_a_report_that_cannot_be_written_is_no_success(command, place, name, flag):
    rack = 'name = "tests"\n[[node]]\nname = "a"\naddress = "127.0.0.1"\nnics = ["lo"]\n'
    (place / "rack.toml").write_text(rack)
    words = [command, *name.split(), *REPORTS[name, flag], flag]
    code, said = ended([*words, "whole", "--", "true"], folder=place, timeout=60)
    assert code == 0, said
    code, said = ended([*words, "/dev/full", "--", "true"], folder=place, timeout=60)
    assert code == 2, said
    assert wrong(words, code, said) is None
    assert b"/dev/full" in said


# Commands that print at once, beside every command's help.
PRINTS = [
    ["latency"],
    ["fabrics"],
    ["keygen"],
    ["workload", "list"],
    ["command-tree"],
    ["schema", "scenario"],
    ["completions", "bash"],
]


def printing(tree):
    return [[*entry["command"], "--help"] for entry in tree] + PRINTS + [["--version"]]


def test_a_full_device_is_no_success(command, tree, place):
    def case(words):
        def run():
            with Path("/dev/full").open("wb") as full:
                code, said = ended([command, *words], folder=place, stdout=full)
            if code == 0:
                return f"{words}: exit code 0, and what it printed is lost"
            return wrong(words, code, said)

        return run

    assert checked([case(words) for words in printing(tree)]) == []


def test_a_pipe_that_nobody_reads_is_no_panic(command, tree, place):
    def case(words):
        def run():
            reader, writer = os.pipe()
            os.close(reader)
            code, said = ended([command, *words], folder=place, stdout=writer)
            os.close(writer)
            return wrong(words, code, said)

        return run

    assert checked([case(words) for words in printing(tree)]) == []


@pytest.mark.parametrize("stream", [1, 2])
def test_a_closed_stream_is_no_panic(command, tree, place, stream):
    def case(words):
        def close():
            os.close(stream)

        return lambda: wrong(words, *ended([command, *words], folder=place, preexec_fn=close))

    bad = [[*entry["command"], "--no-such-flag"] for entry in tree]
    assert checked([case(words) for words in printing(tree) + bad]) == []


def test_an_error_that_cannot_be_said_is_still_an_error(command, tree, place):
    def case(words, what):
        def run():
            if what == "full":
                with Path("/dev/full").open("wb") as stderr:
                    code, _ = ended([command, *words], folder=place, stderr=stderr)
            else:
                reader, writer = os.pipe()
                os.close(reader)
                code, _ = ended([command, *words], folder=place, stderr=writer)
                os.close(writer)
            return None if code == 2 else f"{words}, {what}: exit code {code}, not 2"

        return run

    bad = [[*entry["command"], "--no-such-flag"] for entry in tree if entry["command"]]
    # A program's own flags come after `--`, or are all that follows.
    cases = [case(words, what) for words in bad for what in ("full", "closed")]
    assert checked(cases) == []


@pytest.mark.parametrize("name", ["HOME", "TMPDIR", "RUST_LOG", "XDG_CONFIG_HOME", "LANG", "PATH"])
def test_no_environment_is_too_strange(command, inputs, name):
    def case(words):
        environment = {**os.environb, name.encode(): b"\xff\xfe"}
        words = [command, *words]
        return lambda: wrong(words, *ended(words, folder=inputs, env=environment))

    works = [[*name.split(), *SUCCEEDS[name, flag], flag, "out"] for name, flag in SUCCEEDS]
    runs = [[name, *REPORTS[name, flag], "--", "true"] for name, flag in REPORTS]
    assert checked([case(words) for words in PRINTS + works + runs]) == []


# These commands end with their node. The server goes on, and reports it to its clients. `run` kills
# its program, and has tests of its own.
MEASURES = {"bench micro", "bench ycsb"}


def of_a_pool(tree):
    """Return every command that opens a pool, with the flag."""
    found = [(entry, argument) for entry, argument in arguments(tree) if "URL" in argument["value"]]
    kinds = {" ".join(entry["command"]) for entry, _ in found}
    assert kinds == MEASURES | {"kv", "run"}
    return found


class Node:
    """A memory node that can be killed and restarted at its address."""

    def __init__(self, command, listen="127.0.0.1:0"):
        words = [command, "node", "--memory", "16MiB", "--page", "4KiB", "--insecure", "--listen"]
        self.process = subprocess.Popen([*words, listen], stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip().removeprefix("listening on ")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def asks(entry, argument, url, place):
    words = [*entry["command"], *filled(entry, argument, place), *given(argument, url.encode())]
    long = {"--operations": b"1000000000", "--listen": b"127.0.0.1:0"}
    for other in entry["arguments"]:
        if other["flag"] in long and not other["is_required"]:
            words += given(other, long[other["flag"]])
    return words


def test_a_node_that_is_dead_ends_every_command(command, tree, place):
    node = Node(command)
    node.kill()
    url = f"udp://{node.address}?timeout_ms=300"
    for entry, argument in of_a_pool(tree):
        words = [command, *asks(entry, argument, url, place)]
        code, said = ended(words, folder=place, timeout=60)
        assert code not in (0, None), (words, said)
        assert wrong(words, code, said) is None
        assert said


@pytest.mark.parametrize("comes_again", [False, True])
def test_a_node_that_dies_ends_every_measurement(command, tree, place, comes_again):
    for entry, argument in of_a_pool(tree):
        if " ".join(entry["command"]) not in MEASURES:
            continue
        node = Node(command)
        url = f"udp://{node.address}?timeout_ms=300"
        words = [command, *asks(entry, argument, url, place)]
        running = subprocess.Popen(words, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(1)
        alive = running.poll() is None
        node.kill()
        again = Node(command, node.address) if comes_again else None
        try:
            _, said = running.communicate(timeout=60)
        finally:
            running.kill()
            if again:
                again.kill()
        assert alive, (words, said)
        assert running.returncode == 2, (words, said)
        assert wrong(words, running.returncode, said) is None
