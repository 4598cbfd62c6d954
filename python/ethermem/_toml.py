"""Python values as TOML text, which the simulator reads."""

import json
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import TypeAlias

from ._native import InputError

#: Types of values for a key of a scenario.
Value: TypeAlias = str | bool | int | float | Sequence["Value"] | Mapping[str, "Value"]


def spelled(key: str, value: object) -> str:
    """Spell `value` in one line; errors name it `key`."""
    if isinstance(value, str):
        # A JSON string is a valid basic string of TOML, except for one character.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return repr(float(value))
    if isinstance(value, Mapping):
        return f"{{{', '.join(_pairs(key, value))}}}"
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return f"[{', '.join(spelled(key, part) for part in value)}]"
    raise InputError(
        f"{key} = {value!r}: must be one of text, numbers, booleans, lists and tables of them"
    )


def setting(key: str, value: Value | None) -> str:
    """Spell `KEY=VALUE` as the command takes it; without a value the key is removed."""
    return f"{key}={'' if value is None else spelled(key, value)}"


def document(scenario: Mapping[str, object]) -> str:
    """Spell a whole scenario, a line for each of its keys and tables."""
    return "".join(f"{pair}\n" for pair in _pairs("", scenario))


def _pairs(within: str, table: Mapping[str, object]) -> list[str]:
    pairs = []
    for name, value in table.items():
        if not isinstance(name, str):
            raise InputError(f"{name!r}: must be keys that are text")
        key = f"{within}.{name}" if within else name
        pairs.append(f"{json.dumps(name)} = {spelled(key, value)}")
    return pairs
