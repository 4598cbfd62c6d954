"""The schemas that the command prints match every scenario and result of the repository."""

import copy
import json
import subprocess
import tomllib

import jsonschema
import pytest


def validator(command, kind):
    printed = subprocess.run([command, "schema", kind], capture_output=True, check=True).stdout
    schema = json.loads(printed)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.fixture(scope="module")
def scenario(command):
    return validator(command, "scenario")


@pytest.fixture(scope="module")
def results(command):
    return validator(command, "results")


def test_every_scenario_fits_the_schema(root, scenario):
    fitted = 0
    for path in sorted((root / "scenarios").glob("*.toml")):
        values = tomllib.loads(path.read_text())
        # Plans of `ethermem bench ycsb` are not scenarios.
        if "figure" in values or "ycsb" in values:
            continue
        scenario.validate(values)
        fitted += 1
    assert fitted > 20


@pytest.mark.parametrize(
    "text",
    [
        "[fabric]\nnods = 4",
        "[fabric]\nnodes = 1",
        "[fabric]\nnodes = 4.5",
        '[fabric]\nnodes = "4"',
        '[fabric]\nkind = "etm"',
        "[fabric.edm]\nchunk_byte = 64",
        "[workload]\nload = 0",
        "[run]\nwarmup_fraction = 1",
    ],
)
def test_what_the_program_refuses_is_no_scenario_of_the_schema(scenario, text):
    assert not scenario.is_valid(tomllib.loads(text))


def test_every_golden_result_fits_the_schema(root, results):
    paths = sorted((root / "golden/sim").glob("*.json"))
    assert len(paths) > 20
    for path in paths:
        # Snapshots omit fields that depend on the machine, or on the way to an equal result.
        results.validate({**json.loads(path.read_text()), "events": 1, "wall_s": 0.5})


def test_what_the_command_prints_fits_the_schema(command, results, tmp_path):
    (tmp_path / "s.toml").write_text("[workload]\nmessages = 200\n")

    def printed(*words):
        said = subprocess.run(
            [command, *words, "--format", "json"], cwd=tmp_path, capture_output=True, check=True
        )
        return json.loads(said.stdout)

    one = printed("sim", "s.toml")
    results.validate(one)
    results.validate(printed("compare", "s.toml", "--fabrics", "edm,ndp"))
    for key in one:
        lacking = copy.deepcopy(one)
        del lacking[key]
        assert not results.is_valid(lacking), key
    assert not results.is_valid({**one, "more": 1})
