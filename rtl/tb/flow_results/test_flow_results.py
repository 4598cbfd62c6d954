"""What is said of a run is what became of its tests."""

from types import SimpleNamespace

from flow import results


def report(name, when, outcome):
    cpu = [(results.CPU_SECONDS, 0.25)] if when != "setup" else []
    return SimpleNamespace(
        nodeid=name, when=when, outcome=outcome, duration=0.5, user_properties=cpu
    )


def test_a_test_is_what_went_wrong_in_any_phase_of_it():
    seen = results.Results()
    for phases in (
        ("tb/em_a/test_a.py::test_sound", "passed", "passed", "passed"),
        ("tb/em_a/test_a.py::test_wrong", "passed", "failed", "passed"),
        ("tb/em_b/test_b.py::test_wrong_at_its_end", "passed", "passed", "failed"),
        ("formal/test_proofs.py::test_proof[em_c_proof]", "passed", "skipped", "passed"),
    ):
        name, *outcomes = phases
        for when, outcome in zip(("setup", "call", "teardown"), outcomes, strict=True):
            seen.pytest_runtest_logreport(report(name, when, outcome))
    found = results.parts([{"name": name, **test} for name, test in seen.tests.items()])
    assert found == {
        "em_a": {"passed": 1, "failed": 1, "skipped": 0, "seconds": 3.0, "cpu_seconds": 0.5},
        "em_b": {"passed": 0, "failed": 1, "skipped": 0, "seconds": 1.5, "cpu_seconds": 0.25},
        "em_c_proof": {"passed": 0, "failed": 0, "skipped": 1, "seconds": 1.5, "cpu_seconds": 0.25},
    }
    assert next(iter(found)) == "em_a", "what took most is first"


def test_the_table_has_a_line_for_each_part():
    found = {"em_a": {"passed": 1, "failed": 0, "skipped": 0, "seconds": 2.25, "cpu_seconds": 3}}
    header, line = results.table(found)
    assert header.split() == ["part", "passed", "failed", "skipped", "seconds", "cpu_seconds"]
    assert line.split() == ["em_a", "1", "0", "0", "2.2", "3.0"]
