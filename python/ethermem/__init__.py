"""Memory over Ethernet: run scenarios on fabrics, and read the results as tables and plots.

    import ethermem

    result = ethermem.run("scenarios/app-memcached.toml", {"workload.load": 0.4}, fabric="edm")
    print(result.kinds.all.slowdown_p99)
    print(result.to_pandas())

Times are in nanoseconds (`_ns`) or picoseconds (`_ps`), rates in gigabits a second (`_gbps`); a
slowdown is a message's time over the time it takes alone in the same fabric.
"""

from ._native import (
    FABRICS,
    VERSION,
    EthermemError,
    FileError,
    InputError,
    InvariantError,
)
from .result import (
    FrameStats,
    Kinds,
    KindStats,
    Matching,
    PacketCounts,
    Queue,
    Result,
    Utilisation,
)
from .simulation import run

__version__ = VERSION
__all__ = [
    "FABRICS",
    "VERSION",
    "EthermemError",
    "FileError",
    "FrameStats",
    "InputError",
    "InvariantError",
    "KindStats",
    "Kinds",
    "Matching",
    "PacketCounts",
    "Queue",
    "Result",
    "Utilisation",
    "run",
]
