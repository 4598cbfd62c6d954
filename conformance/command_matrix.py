"""The matrix of the server's commands: each listed command, with words of every sort in each place.

The oracle is redis-server: its answers and its final state are correct. Beyond a
documented limit an error is correct, and then nothing may have changed.
"""

import itertools
import socket
from collections.abc import Iterator
from dataclasses import dataclass

from conformance.limits import Limit
from conformance.pool_matrix import Result

CONDITIONS = ("alone", "beside long values", "while it grows", "memory full")
# These commands report on the server, the time or the connection, so they differ rightly.
OF_THE_SERVER = {
    "AUTH", "BGSAVE", "CLIENT", "COMMAND", "CONFIG", "HELLO", "INFO", "KEYS", "QUIT", "RESET",
    "SCAN", "SHUTDOWN",
}  # fmt: skip
# A full store can be emptied, so these commands need no memory.
DELETIONS = {b"DEL", b"UNLINK", b"GETDEL", b"FLUSHALL", b"FLUSHDB"}
STATES: dict[str, list[list[bytes]]] = {
    "no key": [],
    "a number": [[b"SET", b"k", b"10"]],
    "a text": [[b"SET", b"k", b"some text"]],
    "a key that ends": [[b"SET", b"k", b"10", b"EX", b"1000"]],
}
# A time in any unit that is not over before a cell ends.
PLAIN = b"100000"
NUMBERS = [b"0", PLAIN, b"-1", b"+1", b"01", b" 1", b"1.5", b"", b"x"]
ENDS = [b"%d" % number for number in (2**63 - 1, -(2**63), 2**63, 2**64 - 1)]
OPTIONS = [b"NX", b"XX", b"GT", b"LT", b"GET", b"EX", b"PX", b"KEEPTTL", b"MATCH", b"COUNT"]
# Number of characters of a word or a reply that are shown.
SHOWN_BYTES = 100


class Peer:
    """A connection that sends words and reads one reply."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self.reader = self.socket.makefile("rb")

    def close(self) -> None:
        """Close the connection."""
        self.reader.close()
        self.socket.close()

    def reply(self) -> object:
        """Read one reply: bytes, a number, a list, nothing, or a text that begins with - or +."""
        line = self.reader.readline()
        if not line.endswith(b"\r\n"):
            return "closed"
        kind, rest = line[:1], line[1:-2]
        if kind in b"+-":
            return (kind + rest).decode(errors="replace")
        number = int(rest)
        if kind == b":" or number < 0:
            return number if kind == b":" else None
        if kind == b"$":
            return self.reader.read(number + 2)[:-2]
        assert kind == b"*", line
        return [self.reply() for _ in range(number)]

    def say(self, words: list[bytes]) -> object:
        """Send one request and return its reply."""
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            parts += [b"$%d\r\n" % len(word), word, b"\r\n"]
        try:
            self.socket.sendall(b"".join(parts))
            return self.reply()
        except ConnectionError:
            return "closed"


@dataclass(frozen=True)
class Command:
    """A command as `COMMAND` describes it."""

    name: str
    arity: int
    first_key: int

    def words(self) -> int:
        """Return the minimum number of words, without the name."""
        return abs(self.arity) - 1


def commands_of(peer: Peer) -> list[Command]:
    """Return the commands that a server has."""
    listed = peer.say([b"COMMAND"])
    assert isinstance(listed, list), listed
    return [Command(entry[0].decode().upper(), entry[1], entry[3]) for entry in listed]


class CommandMatrix:
    """Our server beside the oracle."""

    def __init__(
        self, ours: Peer, oracle: Peer, limits: dict[str, Limit], *, is_full: bool = False
    ) -> None:
        self.ours = ours
        self.oracle = oracle
        self.limits = limits
        self.is_full = is_full
        self.result = Result()
        self.seed = 0
        known = {command.name for command in commands_of(oracle)}
        self.commands = [one for one in commands_of(ours) if one.name in known - OF_THE_SERVER]

    def both(self, words: list[bytes]) -> bool:
        """Send both the requests that prepare a state; return whether there was room."""
        mine, right = self.ours.say(words), self.oracle.say(words)
        if self.is_full and words[0] not in DELETIONS and str(mine).startswith("-OOM"):
            return False
        if mine != right:
            self.result.wrong.append(f"{shown(words)}: {mine!r}, oracle {right!r}")
        return True

    def beyond(self, words: list[bytes]) -> bool:
        """Return whether a request exceeds a limit that only our store has."""
        key = self.limits["kv.key_bytes"].most
        value = self.limits["kv.value_bytes"].most
        return (
            any(len(word) > value for word in words)
            or any(len(word) > key for word in words[1:2])
            or (
                words[0] in (b"MSET", b"MGET", b"DEL", b"UNLINK", b"EXISTS", b"APPEND")
                and any(len(word) > key for word in words[1:])
            )
        )

    def state(self, peer: Peer) -> list[object]:
        """Return a server's content of the key, and its number of other keys."""
        there = [peer.say([name, b"k"]) for name in (b"GET", b"PTTL", b"TYPE")]
        # The expiry depends on the clock, so only its presence counts.
        if isinstance(there[1], int) and there[1] > 0:
            there[1] = round(there[1] / 100_000)
        return [*there, peer.say([b"DBSIZE"])]

    def cell(self, state: str, words: list[bytes]) -> None:
        """Bring both into a state, send both the request, and compare replies and final states."""
        if not all(self.both(request) for request in ([b"DEL", b"k"], *STATES[state])):
            self.settle()
            return
        before = self.state(self.ours)
        mine, right = self.ours.say(words), self.oracle.say(words)
        after, oracle_after = self.state(self.ours), self.state(self.oracle)
        self.result.cells += 1
        told = f"{shown(words)} with {state}: "
        is_error = isinstance(mine, str) and mine.startswith("-")
        if is_error and mine != right:
            # An error of ours alone is for a limit or for memory, and then nothing was done.
            is_partly = self.is_full and mine.startswith("-UNCERTAIN")
            is_no_room = self.is_full and words[0] not in DELETIONS and mine.startswith("-OOM")
            is_allowed = self.beyond(words) or is_no_room
            if not is_allowed and not is_partly:
                self.result.wrong.append(f"{told}{mine!r}, oracle {short(right)}")
            elif after != before and not is_partly:
                self.result.wrong.append(f"{told}{mine!r}, and {short(before)}: {short(after)}")
            self.settle()
            return
        if not same(mine, right, words) or after != oracle_after:
            self.result.wrong.append(
                f"{told}{short(mine)}, then {short(after)}; oracle {short(right)}, then "
                f"{short(oracle_after)}"
            )
            self.settle()

    def settle(self) -> None:
        """Bring both to equal keys again, after they diverged."""
        for words in ([b"DEL", b"k"], [b"DEL", b"x"]):
            self.ours.say(words)
            self.oracle.say(words)
        for name in self.extra():
            self.ours.say([b"DEL", name])
            self.oracle.say([b"DEL", name])

    def extra(self) -> list[bytes]:
        """Return the words of the matrix that may have become keys."""
        return [*NUMBERS, *ENDS, *OPTIONS, *self.long_words()]

    def long_words(self) -> list[bytes]:
        """Return words around the length limit of a key."""
        return [b"w" * size for size in self.limits["kv.key_bytes"].sizes()]

    def words_for(self, command: Command) -> Iterator[list[bytes]]:
        """Yield requests of a command: too few words, the minimum, each word of every sort."""
        name = command.name.encode()
        least = command.words()
        plain = [b"k" if at + 1 == command.first_key else PLAIN for at in range(least)]
        yield [name]
        yield [name, *plain[:-1]] if plain else [name, PLAIN]
        yield [name, *plain]
        yield [name, *plain, PLAIN]
        sorts = [*NUMBERS, *ENDS, *self.long_words(), b"\r\n\0\xff"]
        for at, word in itertools.product(range(least), sorts):
            yield [name, *plain[:at], word, *plain[at + 1 :]]
        if command.arity < 0:
            for option in OPTIONS:
                yield [name, *plain, option]
                yield [name, *plain, option, PLAIN]
                yield [name, *plain, option, b"0"]
            for one, other in itertools.permutations(OPTIONS[:5], 2):
                yield [name, *plain, one, other]

    def grow(self, keys: int = 3) -> None:
        """Let the store grow by a few keys, as if by another client."""
        for _ in range(keys):
            self.seed += 1
            self.both([b"SET", b"grown:%d" % self.seed, b"v" * (self.seed % 300)])

    def run(self, condition: str, part: slice = slice(None)) -> Result:
        """Send every command with every word, in one condition."""
        for command in self.commands:
            if command.name in ("FLUSHALL", "FLUSHDB") and condition != "alone":
                continue
            requests = [(state, words) for words in self.words_for(command) for state in STATES]
            for state, words in requests[part]:
                if condition == "while it grows":
                    self.grow()
                self.cell(state, words)
        self.whole()
        return self.result

    def whole(self) -> None:
        """SCAN and KEYS meet every key once, as the oracle has them."""
        right = self.oracle.say([b"KEYS", b"*"])
        assert isinstance(right, list), right
        mine = self.ours.say([b"KEYS", b"*"])
        met: list[bytes] = []
        cursor: object = b"0"
        while True:
            assert isinstance(cursor, bytes)
            reply = self.ours.say([b"SCAN", cursor, b"COUNT", b"100"])
            if not isinstance(reply, list):
                met = []
                self.result.wrong.append(f"SCAN: {short(reply)}")
                break
            cursor = reply[0]
            met += reply[1]
            if cursor == b"0":
                break
        self.result.cells += 2
        if not isinstance(mine, list) or sorted(mine) != sorted(right):
            self.result.wrong.append(f"KEYS *: {short(mine)}, oracle has {len(right)} keys")
        if sorted(set(met)) != sorted(right):
            self.result.wrong.append(f"SCAN met {len(set(met))} keys of {len(right)}")


def same(mine: object, right: object, words: list[bytes]) -> bool:
    """Return whether two replies are equal; times may differ by the time between them."""
    is_time = words[0] in (b"TTL", b"PTTL", b"EXPIRETIME", b"PEXPIRETIME")
    if is_time and isinstance(mine, int) and isinstance(right, int) and min(mine, right) > 0:
        return abs(mine - right) <= max(2000, right // 1000)
    return mine == right


def shown(words: list[bytes]) -> str:
    """Return a request as a line."""
    return " ".join(
        repr(word)[2:-1] if len(word) <= SHOWN_BYTES else f"({len(word)} B)" for word in words
    )


def short(value: object) -> str:
    """Return a reply as a short line."""
    text = repr(value)
    return text if len(text) <= SHOWN_BYTES else f"{text[:SHOWN_BYTES]}... ({len(text)})"
