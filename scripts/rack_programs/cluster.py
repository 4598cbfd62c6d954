"""Write and read values on a Redis cluster: cluster.py KEYS HOST:PORT. It prints a digest.

Each key's value is known, so every value that is read is checked. The digest is of all values.
"""

import hashlib
import random
import socket
import sys

SIZES = (1, 100, 3000, 40_000)
REDIRECTIONS_MAX = 3
Node = tuple[str, int]


class Cluster:
    """Connections to the nodes, and which node has which slot's keys."""

    def __init__(self, first: Node) -> None:
        """Connect to one node; the others are found by its redirections."""
        self.first = first
        self.ends: dict[Node, tuple[socket.socket, object]] = {}

    def call(self, *words: bytes) -> bytes:
        """Send a command to the node that has its key."""
        node = self.first
        parts = [b"*%d\r\n" % len(words), *(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)]
        for _ in range(REDIRECTIONS_MAX):
            if node not in self.ends:
                end = socket.create_connection(node, timeout=20)
                self.ends[node] = end, end.makefile("rb")
            end, reader = self.ends[node]
            end.sendall(b"".join(parts))
            line = reader.readline()
            if line.startswith(b"$"):
                return reader.read(int(line[1:]) + 2)[:-2]
            if not line.startswith(b"-MOVED "):
                return line.strip()
            host, _, port = line.split()[2].decode().rpartition(":")
            node = host, int(port)
        raise SystemExit(f"{node}: too many redirections")


def main() -> None:
    """Write all, read all, compare."""
    keys, (host, _, port) = int(sys.argv[1]), sys.argv[2].rpartition(":")
    cluster = Cluster((host, int(port)))
    own = random.Random(28)
    values = [own.randbytes(own.choice(SIZES)) for _ in range(keys)]
    for number, value in enumerate(values):
        reply = cluster.call(b"SET", b"key:%d" % number, value)
        if reply != b"+OK":
            raise SystemExit(f"SET key:{number}: {reply!r}")
    digest = hashlib.sha256()
    for number, value in enumerate(values):
        found = cluster.call(b"GET", b"key:%d" % number)
        if found != value:
            raise SystemExit(f"GET key:{number}: {len(found)} B instead of {len(value)} B")
        digest.update(found)
    print(len(cluster.ends), digest.hexdigest())


main()
