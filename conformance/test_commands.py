"""Every command of the key-value server, beside redis-server."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from conformance.command_matrix import CONDITIONS, CommandMatrix, Peer
from conformance.conftest import IS_WHOLE, Judge
from conformance.limits import Limit
from conformance.nodes import kv_server, memory_node, redis_server

POOLS = ("local", "edm", "udp", "udp encrypted", "ring")
INDEXES = ("client", "node")
LONG = (1 << 20) + 1


@pytest.fixture
def peers(
    command: Path, tmp_path: Path, pool: str, index: str, condition: str
) -> Iterator[tuple[Peer, Peer]]:
    """Yield connections to our server and to the oracle."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed")
    memory = "16MiB" if condition == "memory full" else "1GiB"
    memory_bytes = (16 << 20) if condition == "memory full" else 1 << 30
    with ExitStack() as stack:
        if pool == "local":
            url = f"local:?memory_bytes={memory_bytes}"
        elif pool == "edm":
            url = f"sim:edm?nodes=4&memory_bytes={memory_bytes}"
        else:
            url = stack.enter_context(memory_node(command, tmp_path, pool, memory))
        ours = Peer(stack.enter_context(kv_server(command, url, index)))
        stack.callback(ours.close)
        oracle = Peer(stack.enter_context(redis_server(program, tmp_path)))
        stack.callback(oracle.close)
        yield ours, oracle


CELLS = [
    (pool, index, condition)
    for pool in POOLS
    for index in INDEXES
    for condition in CONDITIONS
    if IS_WHOLE or pool == "udp" or (pool == "local" and condition == "alone")
]


@pytest.mark.parametrize(("pool", "index", "condition"), CELLS)
def test_every_command_answers_as_redis(
    peers: tuple[Peer, Peer],
    condition: str,
    all_limits: dict[str, Limit],
    judge: Judge,
) -> None:
    ours, oracle = peers
    is_full = condition == "memory full"
    matrix = CommandMatrix(ours, oracle, all_limits, is_full=is_full)
    assert len(matrix.commands) > 25
    if condition == "beside long values":
        for number in range(3):
            words = [b"SET", b"long:%d" % number, bytes([number]) * (LONG + number)]
            matrix.both(words)
    elif is_full:
        # Short values find freed blocks: changes fail and succeed in turn.
        for size in (1, 10, 100):
            for number in range(100):
                matrix.both([b"SET", b"warm:%d:%d" % (size, number), b"x" * size])
            for number in range(100):
                matrix.both([b"DEL", b"warm:%d:%d" % (size, number)])
        number = 0
        while not str(ours.say([b"SET", b"fill:%d" % number, b"x" * 65_536])).startswith("-OOM"):
            oracle.say([b"SET", b"fill:%d" % number, b"x" * 65_536])
            number += 1
        assert number > 20
    judge(matrix.run(condition, slice(None) if IS_WHOLE else slice(None, None, 3)))
