"""Every operation of a pool, in three languages, on every pool, at every limit."""

from pathlib import Path

import pytest

import ethermem
from conformance.conftest import IS_WHOLE, Judge
from conformance.drivers import FACES, Driver
from conformance.limits import Limit
from conformance.nodes import KINDS, PAGE_BYTES, memory_node
from conformance.pool_matrix import CONDITIONS, CUTS, Matrix
from conformance.store_matrix import StoreMatrix

SIMULATED = [fabric for fabric in ethermem.FABRICS if fabric != "local"]
POOLS = ["local", *SIMULATED, *KINDS]
# The fast form: languages differ above the pool, pools below it.
FAST = [
    *(("rust", pool) for pool in ("local", "edm", "udp")),
    *((face, "local") for face in ("c", "python")),
]
WHOLE = [(face, pool) for face in FACES for pool in POOLS]
CELLS = [
    (face, pool, condition)
    for face, pool in (WHOLE if IS_WHOLE else FAST)
    for condition in CONDITIONS
]


def url_of(pool: str, memory_bytes: int) -> str:
    """Return the URL of a pool without a node."""
    if pool == "local":
        return f"local:?memory_bytes={memory_bytes}"
    return f"sim:{pool}?nodes=4&memory_nodes=1&memory_bytes={memory_bytes}"


@pytest.mark.parametrize(("face", "pool", "condition"), CELLS)
def test_every_operation_answers_as_the_model(
    face: str,
    pool: str,
    condition: str,
    command: Path,
    c_driver: Path,
    all_limits: dict[str, Limit],
    judge: Judge,
    tmp_path: Path,
) -> None:
    # A simulated fabric moves a megabyte in thousands of events.
    cuts = CUTS if IS_WHOLE or pool in ("local", "edm", *KINDS) else CUTS[:3]
    with Driver(face, c_driver) as driver:
        if pool in KINDS:
            with memory_node(command, tmp_path, pool, "192MiB") as url:
                judge(Matrix(driver, url, PAGE_BYTES, all_limits, cuts).run(condition))
        else:
            url = url_of(pool, 192 << 20)
            is_slow = pool == "edm-artifact" and not IS_WHOLE
            judge(Matrix(driver, url, None, all_limits, cuts, is_slow=is_slow).run(condition))


STORES = [("rust", "local"), ("rust", "udp"), ("c", "local"), ("python", "local")]


@pytest.mark.parametrize(("face", "pool"), WHOLE if IS_WHOLE else STORES)
def test_every_operation_of_a_store_answers_as_a_dictionary(
    face: str,
    pool: str,
    command: Path,
    c_driver: Path,
    all_limits: dict[str, Limit],
    judge: Judge,
    tmp_path: Path,
) -> None:
    # The longest values take minutes of a fabric's events.
    most = None if IS_WHOLE or pool in ("local", "udp") else 2 << 20

    def run(url: str) -> None:
        matrix = StoreMatrix(driver, url, all_limits)
        matrix.keys()
        matrix.long_values(most)
        matrix.growth(2000 if IS_WHOLE else 300, (1 << 20) + 1)
        matrix.clear()
        matrix.refused()
        judge(matrix.result)

    with Driver(face, c_driver) as driver:
        if pool in KINDS:
            with memory_node(command, tmp_path, pool, "1GiB") as url:
                run(url)
        else:
            run(url_of(pool, 1 << 30))


@pytest.mark.parametrize("pool", ["local", "edm", "udp"])
def test_a_store_that_finds_memory_full_loses_nothing(
    pool: str,
    command: Path,
    c_driver: Path,
    all_limits: dict[str, Limit],
    judge: Judge,
    tmp_path: Path,
) -> None:
    def run(url: str) -> None:
        matrix = StoreMatrix(driver, url, all_limits, is_full=True)
        for seed in range(200):
            matrix.write("node", "put", (seed, 20), (seed, 1 << (seed % 21)))
        matrix.keys()
        matrix.long_values(2 << 20)
        for seed in range(200):
            matrix.read("client", (seed, 20))
        judge(matrix.result)

    with Driver("rust", c_driver) as driver:
        if pool in KINDS:
            with memory_node(command, tmp_path, pool, "16MiB") as url:
                run(url)
        else:
            run(url_of(pool, 16 << 20))
