"""A mutant that hangs is seen as one, and its simulator does not outlive it."""

import time

from flow import mutate, sources, tools
from flow.mutants import MUTANTS


def written(folder, body):
    (folder / "rtl").mkdir(parents=True)
    (folder / "rtl" / "test_it.py").write_text(body, encoding="utf-8")
    return folder


def test_what_does_not_end_has_no_exit_code(monkeypatch, tmp_path):
    monkeypatch.setattr(mutate, "CHECK_SECONDS", 5)
    child = "import subprocess, sys\n\ndef test_it():\n    subprocess.run(['sleep', '8765'])\n"
    begun = time.monotonic()
    code, _ = mutate.ended(written(tmp_path, child), "test_it.py")
    assert code is None and time.monotonic() - begun < 100


def test_a_failed_test_and_one_that_does_not_compile_are_told_apart(tmp_path):
    failed = written(tmp_path / "a", "def test_it():\n    assert 1 == 2\n")
    broken = written(tmp_path / "b", "def test_it():\n    raise AssertionError('%Error: x')\n")
    assert mutate.sees(failed, "test_it.py") == "by a test"
    assert mutate.sees(broken, "test_it.py") is None


def test_a_hang_counts_only_where_the_check_passes_unchanged(monkeypatch, tmp_path):
    monkeypatch.setattr(mutate, "ended", lambda _folder, _check: (None, ""))
    monkeypatch.setattr(mutate, "passes_unchanged", lambda check: check == "a sound one")
    assert mutate.sees(tmp_path, "a sound one") == "by a hang"
    assert mutate.sees(tmp_path, "one that always hangs") is None


def test_every_mutant_is_one_change_of_what_is_there():
    for path, old, new, checks in MUTANTS:
        text = (tools.RTL / path).read_text(encoding="utf-8")
        assert text.count(old) == 1 and old != new and checks, (path, old)


def test_every_module_has_a_mutant():
    corrupted = {path for path, *_ in MUTANTS}
    modules = {path for path in sources.files().values() if path.is_relative_to(tools.RTL)}
    benches = {path for path in modules if path.parts[-3] == "tb" or path.parent.name == "formal"}
    named = {path.relative_to(tools.RTL).as_posix() for path in modules - benches}
    assert named and named <= corrupted, sorted(named - corrupted)
