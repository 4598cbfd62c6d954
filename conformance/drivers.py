"""The driver programs in each language: how they are built and called."""

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "debug"
# Time limit of an answer in seconds.
ANSWER_S_MAX = 600
# Python has one exception for several kinds of errors.
PYTHON_KINDS = {
    "Unmapped": "UnmappedError",
    "Permission": "AccessError",
    "Empty": "LengthError",
    "TooLong": "LengthError",
    "KeyTooLong": "LengthError",
    "ValueTooLong": "LengthError",
    "Misaligned": "MisalignedError",
    "Full": "FullError",
    "NotHeld": "NotHeldError",
    "NoSuchOffload": "OffloadError",
    "Offload": "OffloadError",
    "Refused": "RefusedError",
}
# C merges kinds of errors of the store, too.
C_KINDS = {"KeyTooLong": "TooLong", "ValueTooLong": "TooLong"}
FACES = ("rust", "c", "python")


def build_c(folder: Path) -> Path:
    """Compile the driver in C against the library as the Rust tests build it."""
    program = folder / "driver"
    libraries = folder / "lib"
    libraries.mkdir()
    for name in ("libethermem.so", "libethermem.so.0"):
        (libraries / name).symlink_to(TARGET / "deps" / "libethermem_capi.so")
    words = ["cc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror"]
    words += [str(ROOT / "conformance" / "driver.c"), "-o", str(program)]
    words += ["-I", str(ROOT / "crates" / "capi" / "include"), "-L", str(libraries)]
    words += [f"-Wl,-rpath,{libraries}", "-lethermem", "-pthread"]
    subprocess.run(words, check=True)
    return program


class Driver:
    """A running driver: a request gets an answer, or the driver is dead."""

    def __init__(self, face: str, c_program: Path | None) -> None:
        self.face = face
        words = {
            "rust": [str(TARGET / "examples" / "conformance")],
            "c": [str(c_program)],
            "python": [sys.executable, "-m", "conformance.driver"],
        }[face]
        self.process = subprocess.Popen(
            words,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ask(self, request: str) -> str:
        """Return the answer to one request; for an error only its kind."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        late = threading.Timer(ANSWER_S_MAX, self.process.kill)
        late.start()
        try:
            self.process.stdin.write(request + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            late.cancel()
        if not answer:
            self.process.kill()
            assert self.process.stderr is not None
            said = self.process.stderr.read().strip()
            return f"dead {self.process.wait()} after: {request}: {said[-400:]}"
        if answer.startswith("error "):
            return " ".join(answer.split()[:2])
        return answer.strip()

    def kind(self, answer: str) -> str:
        """Return an answer as this language gives it: languages have fewer kinds of errors."""
        word, _, kind = answer.partition(" ")
        kinds = {"python": PYTHON_KINDS, "c": C_KINDS}.get(self.face, {})
        return f"{word} {kinds.get(kind, kind)}" if word == "error" else answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.communicate()


def missing() -> str | None:
    """Return what a driver needs and this machine lacks."""
    if not (TARGET / "examples" / "conformance").exists():
        return "the driver in Rust is not built: cargo build -p ethermem-kv --examples"
    if not (TARGET / "deps" / "libethermem_capi.so").exists():
        return "the library of C is not built: cargo test -p ethermem-capi --no-run"
    return None if shutil.which("cc") else "there is no C compiler"
