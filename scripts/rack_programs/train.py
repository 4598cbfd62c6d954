"""Data-parallel training with NumPy over mpi4py: 11 M gradients are summed in each step.

mpirun -n RANKS python3 train.py STEPS PARAMETERS

Each rank has its own examples. The model is linear in blocks, so that gradients cost little beside
their exchange. The digest of the weights is the same whatever carries the bytes.
"""

import hashlib
import sys
import time

import numpy as np
from mpi4py import MPI

WIDTH = 1000
RATE = 1e-3


def main() -> None:
    """Train; rank 0 prints the time of a step, of its exchange, and the digest."""
    steps, parameters = int(sys.argv[1]), int(sys.argv[2])
    world = MPI.COMM_WORLD
    rank, ranks = world.Get_rank(), world.Get_size()
    rows = parameters // WIDTH
    own = np.random.default_rng(rank)
    weights = np.zeros((rows, WIDTH), dtype=np.float32)
    gradients = np.empty_like(weights)
    summed = np.empty_like(weights)
    exchange_s = 0.0
    world.Barrier()
    start = time.perf_counter()
    for _ in range(steps):
        inputs = own.integers(-3, 4, WIDTH).astype(np.float32)
        targets = own.integers(-9, 10, rows).astype(np.float32)
        errors = weights @ inputs - targets
        np.multiply(errors[:, None], inputs[None, :], out=gradients)
        begun = time.perf_counter()
        world.Allreduce(gradients, summed)
        exchange_s += time.perf_counter() - begun
        weights -= RATE / ranks * summed
    took_s = time.perf_counter() - start
    digest = hashlib.sha256(weights.tobytes()).hexdigest()
    if len(set(world.allgather(digest))) != 1:
        raise SystemExit("the ranks have different weights")
    if rank == 0:
        print(f"{took_s / steps * 1e3:.3f} {exchange_s / steps * 1e3:.3f} {digest}")


main()
