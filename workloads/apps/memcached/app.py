"""Memcached under a YCSB driver; the answer is what all of its keys held at the end."""

import os
import pwd

from ..app import App, Debian, Outcome, Run, started
from ..ycsb import Driver, Load, connect

LOADS = {"small": Load(60_000, 60_000), "full": Load(500_000, 400_000)}
# More than the load needs: a full cache must say so, not drop what was written.
MEMORY_MIB = {"small": 200, "full": 1000}


class Text:
    """Memcached's protocol of lines."""

    def set(self, key: bytes, value: bytes) -> bytes:
        """Give the request that writes a value."""
        return b"set %b 0 0 %d\r\n%b\r\n" % (key, len(value), value)

    def get(self, key: bytes) -> bytes:
        """Give the request that reads a value."""
        return b"get %b\r\n" % key

    def stored(self) -> bytes:
        """Give the answer to a write."""
        return b"STORED\r\n"

    def found(self, key: bytes, value: bytes) -> bytes:
        """Give the answer to a read of a key that is there."""
        return b"VALUE %b 0 %d\r\n%b\r\nEND\r\n" % (key, len(value), value)


def _run(run: Run) -> Outcome:
    socket = run.scratch / "memcached.sock"
    memory = ["-m", str(MEMORY_MIB[run.size]), "-M", "-t", "2"]
    user = pwd.getpwuid(os.getuid()).pw_name
    # -A has it end on a client's word: the command before it need not pass signals on.
    with started(run, ["memcached", *memory, "-A", "-u", user, "-s", socket]) as program:
        with connect(socket, program.alive()) as connection:
            measured_s, answer = Driver(connection, Text(), LOADS[run.size]).run()
            connection.sendall(b"shutdown\r\n")
        program.wait()
    return Outcome(answer, measured_s, program.resident_kib_max)


PACKAGE = Debian("memcached", "BSD-3-Clause", "memcached")
MEMCACHED = [App("memcached", "key-value cache, YCSB's workload A", PACKAGE, _run)]
