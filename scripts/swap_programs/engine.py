"""A single-machine graph engine, NetworKit, with one thread: what bench_graph.py runs.

    python3 engine.py make EDGES SCALE FILE    an engine's file of pairs of 32-bit vertices
    python3 engine.py run FILE                 PageRank, then connected components

`run` ends with a line of the answer's digest and of the seconds that each part took. Input is
mapped, not copied. One thread adds in one order, so that equal answers are equal bits.
"""

import hashlib
import os
import sys
import time
from itertools import pairwise

# NetworKit imports what it finds, and this is as much memory as a graph; nothing is drawn here.
sys.modules["matplotlib"] = None  # type: ignore[assignment]

import networkit  # noqa: E402
import numpy as np  # noqa: E402

DAMPING = 0.85
TOLERANCE = 1e-8


def make(edges: str, scale: int, path: str) -> None:
    """Write the engine's own file of an undirected graph."""
    ends = np.fromfile(edges, dtype="<u4").reshape(-1, 2).astype(np.uint64)
    pairs = (ends[:, 0], ends[:, 1])
    graph = networkit.GraphFromCoo(pairs, n=1 << scale, weighted=False, directed=False)
    networkit.graphio.NetworkitBinaryWriter().write(graph, path)


def run(path: str) -> None:
    """Load the graph, compute, and print."""
    times = [time.monotonic()]
    graph = networkit.graphio.NetworkitBinaryReader().read(path)
    times.append(time.monotonic())
    ranks = networkit.centrality.PageRank(graph, damp=DAMPING, tol=TOLERANCE)
    ranks.run()
    times.append(time.monotonic())
    parts = networkit.components.ConnectedComponents(graph)
    parts.run()
    times.append(time.monotonic())
    digest = hashlib.sha256(np.asarray(ranks.scores(), dtype="<f8").tobytes())
    labels = (parts.componentOfNode(node) for node in range(graph.numberOfNodes()))
    digest.update(np.fromiter(labels, dtype="<u8").tobytes())
    load, pagerank, components = (after - before for before, after in pairwise(times))
    print(
        f"answer={digest.hexdigest()[:32]} edges={graph.numberOfEdges()} "
        f"load={load:.6f} pagerank={pagerank:.6f} components={components:.6f}",
        flush=True,
    )
    # Python would visit all that it holds once more, and free it.
    os._exit(0)


if __name__ == "__main__":
    networkit.setNumberOfThreads(1)
    if sys.argv[1] == "make":
        make(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    else:
        run(sys.argv[2])
