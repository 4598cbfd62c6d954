"""The package's type annotations are correct."""

import subprocess
import sys
from pathlib import Path

import ethermem


def test_the_stub_is_that_of_the_extension_module():
    stubtest = [sys.executable, "-m", "mypy.stubtest", "ethermem._native"]
    ended = subprocess.run(stubtest, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_package_says_that_it_is_typed():
    assert (Path(ethermem.__file__).parent / "py.typed").exists()


def test_a_use_of_the_package_is_checked(tmp_path):
    use = tmp_path / "use.py"
    use.write_text(
        "import ethermem\n"
        "slowdown: float | None = ethermem.run('a').kinds.all.slowdown_p99\n"
        "wrong: str = ethermem.run('a').kinds.all.messages\n"
    )
    mypy = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), str(use)]
    ended = subprocess.run(mypy, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.stdout.count("error:") == 1, ended.stdout
    assert "use.py:3: error: Incompatible types in assignment" in ended.stdout
