from os import PathLike
from typing import Final

__all__ = [
    "FABRICS",
    "VERSION",
    "EthermemError",
    "FileError",
    "InputError",
    "InvariantError",
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
