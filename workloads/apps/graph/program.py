"""PageRank or connected components with scipy.sparse, on a graph of 32-bit pairs of vertices."""

import hashlib
import sys
import time

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

# Ranks are fixed-point numbers, so that no order of additions changes a bit.
RANK_ONE = 1 << 32
# A fifth of 0.85, 17/20, stays below 2^63 for the sum of all ranks.
DAMPING = (17, 20)


def load(path: str, scale: int) -> csr_array:
    """Read the graph as a matrix whose row is the destination, column the source."""
    ends = np.fromfile(path, dtype="<u4").reshape(-1, 2).astype(np.int32)
    ones = np.ones(len(ends), dtype=np.int64)
    # Edges that are there twice count twice.
    shape = (1 << scale, 1 << scale)
    return csr_array(coo_array((ones, (ends[:, 1], ends[:, 0])), shape=shape))


def pagerank(matrix: csr_array, rounds: int) -> np.ndarray:
    """Rank the vertices; one without edges out of it keeps its rank to itself."""
    degree = np.maximum(matrix.sum(axis=0), 1)
    ranks = np.full(matrix.shape[0], RANK_ONE, dtype=np.int64)
    base = RANK_ONE - RANK_ONE * DAMPING[0] // DAMPING[1]
    for _ in range(rounds):
        ranks = base + (matrix @ (ranks // degree)) * DAMPING[0] // DAMPING[1]
    return ranks


def components(matrix: csr_array, rounds: int) -> np.ndarray:
    """Name each vertex's component by its smallest vertex."""
    for _ in range(rounds):
        _, labels = connected_components(matrix, directed=False)
    smallest = np.full(labels.max() + 1, matrix.shape[0], dtype=np.int64)
    np.minimum.at(smallest, labels, np.arange(matrix.shape[0]))
    named: np.ndarray = smallest[labels]
    return named


if __name__ == "__main__":
    kind, graph, scale_of_graph, repeats = sys.argv[1:5]
    loaded = load(graph, int(scale_of_graph))
    begun = time.monotonic()
    result = {"pagerank": pagerank, "components": components}[kind](loaded, int(repeats))
    took_s = time.monotonic() - begun
    answer = hashlib.sha256(result.astype("<u8").tobytes()).hexdigest()[:32]
    print(f"answer={answer} measured_s={took_s:.6f}")
