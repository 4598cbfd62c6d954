"""xz, zstd and sort: indices of what was read, met at random, and a buffer that is sorted."""

import lzma
import subprocess
from functools import partial
from pathlib import Path

from .. import data
from ..app import App, AppError, Debian, Outcome, Run, digest, made_once, run_batch, run_plain

# Words that are compressed, and records of 100 bytes that are sorted.
WORDS = {"small": 2_000_000}
RECORDS = {"small": 800_000}
# A large dictionary: its index is most of the memory.
XZ = ["xz", "--threads=1", "--compress", "--stdout", "--lzma2=preset=1,dict=64MiB"]
# Its window is all that was read.
ZSTD = ["zstd", "--single-thread", "-3", "--long=27", "--quiet", "--stdout"]
# The buffer holds all lines, so that the program's memory counts, and no file beside it.
SORT = ["sort", "--parallel=1", "--buffer-size=256M"]


def _read_before(path: Path) -> Path:
    """Read a file, so that a limit of the program's memory does not count the file's pages."""
    path.read_bytes()
    return path


def _pack(command: list[str], output: Path) -> None:
    run_plain(["sh", "-c", 'exec "$@" > "$0"', str(output), *command])


def _run_packer(run: Run, words: list[str], file: Path) -> tuple[bytes, float, int]:
    """Pack a file: what the program wrote, which must be what it writes when not limited."""
    program = words[0]
    version = subprocess.run([program, "--version"], capture_output=True, check=True).stdout
    name = digest([str(file.name).encode(), version, *map(str.encode, words)])
    command = [*words, str(_read_before(file))]
    plain = made_once(f"{program}-{name}.{program}", partial(_pack, command))
    _, measured_s, resident = run_batch(run, command)
    packed = (run.scratch / "stdout").read_bytes()
    if packed != plain.read_bytes():
        raise AppError(f"what {program} wrote is not what it writes when not limited")
    return packed, measured_s, resident


def _run_xz(run: Run) -> Outcome:
    packed, measured_s, resident = _run_packer(run, XZ, data.text(WORDS[run.size]))
    return Outcome(digest([lzma.decompress(packed)]), measured_s, resident)


def _run_zstd(run: Run) -> Outcome:
    packed, measured_s, resident = _run_packer(run, ZSTD, data.records(RECORDS[run.size]))
    unpack = ["zstd", "--decompress", "--long=27", "--quiet", "--stdout"]
    unpacked = subprocess.run(unpack, input=packed, capture_output=True, check=True).stdout
    return Outcome(digest([unpacked]), measured_s, resident)


def _run_sort(run: Run) -> Outcome:
    records = _read_before(data.records(RECORDS[run.size]))
    output = run.scratch / "sorted"
    locale = {"LC_ALL": "C"}
    command: list[str | Path] = [*SORT, "--output", output, records]
    _, measured_s, resident = run_batch(run, command, environment=locale)
    return Outcome(digest([output.read_bytes()]), measured_s, resident)


TEXT = [
    App(
        "xz",
        "compresses a file of text",
        Debian("xz-utils", "0BSD", "xz"),
        _run_xz,
    ),
    App(
        "zstd",
        "compresses a file of records, long window",
        Debian("zstd", "BSD-3-Clause or GPL-2.0", "zstd"),
        _run_zstd,
    ),
    App(
        "sort",
        "sorts a file of records",
        Debian("coreutils", "GPL-3.0-or-later", "sort"),
        _run_sort,
    ),
]
