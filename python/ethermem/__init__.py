"""Memory over Ethernet: remote memory on any fabric, and runs of scenarios as tables and plots.

    with ethermem.Pool.open("sim:edm?nodes=2") as pool:
        region = pool.thread().alloc(4096).wait()
        region.write(0, b"hello").wait()
        print(region.read(0, 5).wait(), pool.now_ps())

    import ethermem

    result = ethermem.run("scenarios/app-memcached.toml", {"workload.load": 0.4}, fabric="edm")
    print(result.kinds.all.slowdown_p99)
    print(result.to_pandas())
    print(ethermem.compare("load-64b", fabrics=["edm", "cxl"]).text)

Times are in nanoseconds (`_ns`) or picoseconds (`_ps`), rates in Gb/s (`_gbps`). A slowdown
is a message's latency over its latency alone in the same fabric.
"""

from ._native import (
    FABRICS,
    VERSION,
    AccessError,
    EndingError,
    EthermemError,
    FileError,
    ForkedError,
    FullError,
    InputError,
    InvariantError,
    LengthError,
    LostError,
    MisalignedError,
    NoAnswerError,
    NodeError,
    NotHeldError,
    OffloadError,
    OffloadStoppedError,
    OwnerDiedError,
    Pending,
    Pool,
    PoolError,
    ProcessEndedError,
    ProgramError,
    RefusedError,
    Region,
    RestartedError,
    StalledError,
    Tasks,
    Thread,
    UncertainError,
    UnmappedError,
    UnreachableError,
)
from .experiments import Experiment, Replay, capacity, compare, report, study
from .permissions import Permissions
from .result import (
    FrameStats,
    Kinds,
    KindStats,
    Matching,
    PacketCounts,
    ProgramStats,
    Queue,
    Result,
    Steady,
    Utilisation,
)
from .simulation import run

__version__ = VERSION
__all__ = [
    "FABRICS",
    "VERSION",
    "AccessError",
    "EndingError",
    "EthermemError",
    "Experiment",
    "FileError",
    "ForkedError",
    "FrameStats",
    "FullError",
    "InputError",
    "InvariantError",
    "KindStats",
    "Kinds",
    "LengthError",
    "LostError",
    "Matching",
    "MisalignedError",
    "NoAnswerError",
    "NodeError",
    "NotHeldError",
    "OffloadError",
    "OffloadStoppedError",
    "OwnerDiedError",
    "PacketCounts",
    "Pending",
    "Permissions",
    "Pool",
    "PoolError",
    "ProcessEndedError",
    "ProgramError",
    "ProgramStats",
    "Queue",
    "RefusedError",
    "Region",
    "Replay",
    "RestartedError",
    "Result",
    "StalledError",
    "Steady",
    "Tasks",
    "Thread",
    "UncertainError",
    "UnmappedError",
    "UnreachableError",
    "Utilisation",
    "capacity",
    "compare",
    "report",
    "run",
    "study",
]
