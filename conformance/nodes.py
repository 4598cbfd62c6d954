"""Memory nodes and key-value servers for one test, and their addresses."""

import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

KINDS = ("udp", "udp cached", "udp encrypted", "ring", "ring encrypted", "node")
PAGE_BYTES = 4096


def free_port() -> int:
    """Return a TCP port of the loopback on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


@contextmanager
def memory_node(command: Path, folder: Path, kind: str, memory: str) -> Iterator[str]:
    """Start a node, and yield the URL of a pool of a kind on it."""
    scheme, _, form = kind.partition(" ")
    sealed, cached = form == "encrypted", form == "cached"
    port = free_port()
    words = [str(command), "node", "--memory", memory, "--page", "4KiB"]
    words += ["--listen", "127.0.0.1:0"]
    if scheme in ("ring", "node"):
        words += ["--ring", f"lo:{port}"]
    if sealed:
        key = folder / "tenant.key"
        subprocess.run([command, "keygen", "--tenant", "5", "--out", key], check=True)
        words += ["--key", str(key)]
    else:
        words += ["--insecure"]
    log = folder / "node.log"
    with log.open("w") as errors:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("listening on "), log.read_text()
        address = line.removeprefix("listening on ").split(",")[0].split()[0]
        place = f"ring://lo:{port}" if scheme == "ring" else f"{scheme}://{address}"
        parameters = {sealed: f"?key={folder / 'tenant.key'}", cached: "?cache_bytes=16KiB"}
        yield place + parameters.get(True, "")
        assert process.poll() is None, f"the node ended by itself: {log.read_text()[-1000:]}"
    finally:
        process.kill()
        process.communicate()


@contextmanager
def kv_server(command: Path, pool: str, index: str) -> Iterator[int]:
    """Start a key-value server on a pool, and yield its port."""
    words = [str(command), "kv", "--listen", "127.0.0.1:0", "--pool", pool, "--index", index]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"on 127\.0\.0\.1:(\d+), ready", line)
        assert found, line
        yield int(found[1])
        assert process.poll() is None, "the server ended by itself"
    finally:
        process.kill()
        process.communicate()


@contextmanager
def redis_server(program: str, folder: Path) -> Iterator[int]:
    """Start the oracle, and yield its port."""
    port = free_port()
    words = [program, "--port", str(port), "--save", "", "--appendonly", "no"]
    words += ["--bind", "127.0.0.1", "--dir", str(folder), "--proto-max-bulk-len", "1gb"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        for _ in range(1000):
            try:
                socket.create_connection(("127.0.0.1", port), timeout=10).close()
                break
            except ConnectionRefusedError:
                assert process.poll() is None, "redis-server ended"
        yield port
    finally:
        process.kill()
        process.wait()
