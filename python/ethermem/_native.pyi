from os import PathLike
from typing import Final, final

__all__ = [
    "FABRICS",
    "VERSION",
    "EthermemError",
    "FileError",
    "InputError",
    "InvariantError",
    "Stop",
    "Sweep",
    "run_task",
    "simulate",
]

VERSION: Final[str]
FABRICS: Final[list[str]]

class EthermemError(Exception): ...
class FileError(EthermemError): ...
class InputError(EthermemError): ...
class InvariantError(EthermemError): ...

def simulate(
    text: str | None,
    name: str,
    settings: list[str],
    fabric: str | None,
    seed: int | None,
    messages: str | PathLike[str] | None,
    command: str,
) -> tuple[str, str]: ...

@final
class Stop:
    def __new__(cls) -> Stop: ...
    def set(self) -> None: ...

@final
class Sweep:
    def __new__(
        cls, file: str | PathLike[str], settings: list[str], out: str | PathLike[str]
    ) -> Sweep: ...
    @property
    def points(self) -> int: ...
    @property
    def journal(self) -> str: ...
    def missing(self) -> list[int]: ...
    def task(self, index: int) -> str: ...
    def add(self, record: str) -> None: ...
    def write(self) -> tuple[str, str]: ...

def run_task(task: str, stop: Stop | None = None) -> str: ...
