"""Redis under a YCSB driver; its own `DEBUG DIGEST` is the answer."""

from pathlib import Path

from ..app import App, AppError, Debian, Outcome, Run, started
from ..ycsb import Driver, Load, connect

LOADS = {"small": Load(60_000, 60_000), "full": Load(500_000, 400_000)}
OPTIONS = ["--port", "0", "--save", "", "--appendonly", "no", "--enable-debug-command", "local"]


class Resp:
    """Redis's protocol."""

    def set(self, key: bytes, value: bytes) -> bytes:
        """Give the request that writes a value."""
        return command(b"SET", key, value)

    def get(self, key: bytes) -> bytes:
        """Give the request that reads a value."""
        return command(b"GET", key)

    def stored(self) -> bytes:
        """Give the answer to a write."""
        return b"+OK\r\n"

    def found(self, _key: bytes, value: bytes) -> bytes:
        """Give the answer to a read of a key that is there."""
        return b"$%d\r\n%b\r\n" % (len(value), value)


def command(*words: bytes) -> bytes:
    """Give a request of any words."""
    parts = b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
    return b"*%d\r\n%b" % (len(words), parts)


def _run(run: Run) -> Outcome:
    socket = run.scratch / "redis.sock"
    server: list[str | Path] = ["redis-server", *OPTIONS, "--unixsocket", socket]
    with started(run, server) as program:
        with connect(socket, program.alive()) as connection:
            measured_s, _ = Driver(connection, Resp(), LOADS[run.size]).run()
            connection.sendall(command(b"DEBUG", b"DIGEST"))
            with connection.makefile("rb") as lines:
                answer = lines.readline().decode().strip()
            connection.sendall(command(b"SHUTDOWN", b"NOSAVE"))
        program.wait()
    if not answer.startswith("+"):
        raise AppError(f"DEBUG DIGEST gave {answer!r}")
    return Outcome(answer.removeprefix("+"), measured_s, program.resident_kib_max)


PACKAGE = Debian("redis-server", "BSD-3-Clause", "redis-server")
REDIS = [App("redis", "key-value server, YCSB's workload A", PACKAGE, _run)]
