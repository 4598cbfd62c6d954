"""`ethermem kv` with common clients: redis-py, redis-cli and redis-benchmark."""

import re
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import redis

POOLS = ["local:", "sim:edm?nodes=6", "udp:"]


class Server:
    """A server process, and its address."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self.port = port
        self.is_told_to_end = False

    def client(self, protocol: int = 2) -> "redis.Redis":
        return redis.Redis(port=self.port, protocol=protocol, socket_timeout=30)

    def end(self) -> int:
        """Ask it to end, and return its exit code."""
        self.is_told_to_end = True
        self.process.terminate()
        return self.process.wait(timeout=30)

    def raw(self, data: bytes) -> bytes:
        """Send bytes, and return everything received until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as stream:
            stream.sendall(data)
            received = b""
            while more := stream.recv(65536):
                received += more
            return received


@contextmanager
def serving(command: Path, *arguments: str) -> Iterator[Server]:
    with subprocess.Popen(
        [command, "kv", "--listen", "127.0.0.1:0", *arguments],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"on 127\.0\.0\.1:(\d+), ready", line)
        assert found, line
        server = Server(process, int(found[1]))
        try:
            yield server
            ended = process.poll() is not None
            assert ended == server.is_told_to_end, "the server ended by itself"
        finally:
            process.kill()


@contextmanager
def memory_node(command: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a node, and return it with the URL of a pool on it."""
    words = [str(command), "node", "--memory", "256MiB", "--listen", "127.0.0.1:0", "--insecure"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("listening on "), line
        try:
            yield process, f"udp://{line.removeprefix('listening on ').strip()}"
        finally:
            process.kill()


@pytest.fixture(params=[(pool, index) for pool in POOLS for index in ("client", "node")])
def server(request: pytest.FixtureRequest, command: Path) -> Iterator[Server]:
    pool, index = request.param
    with ExitStack() as stack:
        if pool == "udp:":
            _, pool = stack.enter_context(memory_node(command))
        yield stack.enter_context(serving(command, "--pool", pool, "--index", index))


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


@pytest.mark.parametrize("protocol", [2, 3])
def test_values_keys_and_times(server: Server, protocol: int) -> None:
    client = server.client(protocol)
    assert client.ping()
    assert client.get("key") is None
    assert client.set("key", b"value \r\n\x00") is True
    assert client.get("key") == b"value \r\n\x00"
    assert client.set("key", "other", nx=True) is None
    assert client.set("key", "other", xx=True, get=True) == b"value \r\n\x00"
    assert client.mset({"a": 1, "b": 2}) is True
    assert client.mget("a", "none", "b") == [b"1", None, b"2"]
    assert (client.incr("a"), client.incrby("a", 40), client.decr("a")) == (2, 42, 41)
    assert client.append("key", "!") == 6
    assert client.strlen("key") == 6
    assert client.exists("a", "a", "none") == 2
    assert client.dbsize() == 3
    assert client.set("brief", "x", px=60_000) is True
    assert 0 < client.pttl("brief") <= 60_000
    assert (client.ttl("key"), client.ttl("none")) == (-1, -2)
    assert client.expire("key", 100) and client.ttl("key") == 100
    assert client.set("key", "y", keepttl=True) and client.ttl("key") == 100
    assert client.persist("key") and client.ttl("key") == -1
    assert client.expire("key", -1) and client.get("key") is None
    assert client.delete("a", "none") == 1
    assert client.echo("text") == b"text"
    assert client.flushall() is True
    assert client.dbsize() == 0


def test_a_key_ends_when_its_time_is_over(server: Server) -> None:
    client = server.client()
    client.set("key", "x", px=30)
    client.set("stays", "x")
    threading.Event().wait(0.2)
    assert client.get("key") is None
    assert client.set("key", "anew", nx=True) is True
    assert client.ttl("key") == -1


def test_a_scan_meets_every_key(server: Server) -> None:
    client = server.client()
    pipeline = client.pipeline(transaction=False)
    for number in range(3000):
        pipeline.set(f"key:{number}", number)
    pipeline.execute()
    assert {*client.scan_iter(count=50)} == {b"key:%d" % number for number in range(3000)}
    assert {*client.scan_iter("key:1?")} == {b"key:%d" % number for number in range(10, 20)}
    assert sorted(client.keys("*:29*[05]"))[:2] == [b"key:290", b"key:2900"]


ERRORS = [
    (["NONSENSE", "a", "b"], "unknown command 'NONSENSE', with args beginning with: 'a' 'b' "),
    (["LPUSHY", "a", "b"], "unknown command 'LPUSHY', with args beginning with: 'a' 'b' "),
    (["GET"], "wrong number of arguments for 'get' command"),
    (["MSET", "a", "b", "c"], "wrong number of arguments for 'mset' command"),
    (["INCR", "text"], "value is not an integer or out of range"),
    (["INCR", "most"], "increment or decrement would overflow"),
    (["DECRBY", "none", str(-(2**63))], "decrement would overflow"),
    (["SET", "a", "b", "EX", "0"], "invalid expire time in 'set' command"),
    (["SET", "a", "b", "EX", "x"], "value is not an integer or out of range"),
    (["SET", "a", "b", "NX", "XX"], "syntax error"),
    (["SET", "a", "b", "EX"], "syntax error"),
    (["SETEX", "a", "-1", "b"], "invalid expire time in 'setex' command"),
    (["EXPIRE", "a", "1", "NX", "XX"], "NX and XX, GT or LT options at the same time"),
    (["EXPIRE", "a", "9223372036854775807"], "invalid expire time in 'expire' command"),
    (["SELECT", "16"], "DB index is out of range"),
    (["SCAN", "x"], "invalid cursor"),
    (["SCAN", "0", "COUNT", "0"], "syntax error"),
    (["HELLO", "4"], "unsupported protocol version"),
    (["CLIENT", "NONSENSE"], "unknown subcommand 'NONSENSE'. Try CLIENT HELP."),
    (["CLIENT", "SETNAME", "a b"], "Client names cannot contain spaces"),
]


@contextmanager
def redis_server() -> Iterator[int]:
    """Run redis-server, and return its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arguments = ["--port", str(port), "--save", "", "--appendonly", "no"]
    with subprocess.Popen(
        [tool("redis-server"), *arguments], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert any("eady to accept" in line for line in process.stdout)
        try:
            yield port
        finally:
            process.kill()


@contextmanager
def both(command: Path) -> Iterator[list["redis.Redis"]]:
    """Return a client of our server and a client of redis-server."""
    with redis_server() as port, serving(command) as ours:
        yield [ours.client(), redis.Redis(port=port, protocol=2, socket_timeout=30)]


def answer(client: "redis.Redis", words: list[str]) -> object:
    try:
        return client.execute_command(*words)
    except redis.ResponseError as error:
        return f"{type(error).__name__}: {error}"


def test_errors_are_those_of_redis(command: Path) -> None:
    with both(command) as clients:
        for client in clients:
            client.mset({"text": "x", "most": 2**63 - 1})
        for words, text in ERRORS:
            ours, real = (answer(client, words) for client in clients)
            assert ours == real
            assert text in str(ours)


def test_answers_are_those_of_redis(command: Path) -> None:
    commands = """
        SET k 10|INCR k|GET k|GETSET k a|GETDEL k|GET k|SET k v GET|SET k w XX GET|SETNX k x
        STRLEN k|APPEND k more|TYPE k|TYPE none|EXPIRE k 100 XX|EXPIRE k 100 GT|EXPIRE k 100 LT
        TTL k|EXPIRE k 50 GT|EXPIRE k 200 GT|TTL k|PERSIST k|PERSIST k|EXPIREAT k 1|EXISTS k
        SET n -5|DECRBY n 3|INCRBY n 08|SETEX s 10 v|TTL s|SET s v2|TTL s|SET s v EX 9 KEEPTTL
        SET x 1 EX 100 NX|TTL x|SET x 2 EX 50 NX|GET x|TTL x|SET x 3 NX EX 50|SET x 4 XX EX 70
        GET x|TTL x|SET y 5 XX EX 9|EXISTS y|SET x 6 NX GET|SET x 7 EX 10 PX 10|DEL x
        SET g 1|GETEX g|GETEX g EX 50|TTL g|GETEX g PERSIST|TTL g|GETEX g EXAT 1|EXISTS g
        GETEX g EX 5|GETEX g EX|GETEX g EX 1 PX 1|GETEX g EX 0|GETEX g PERSIST 1|GETEX g KEEPTTL
        PSETEX s 0 v|UNLINK s n none|DBSIZE|PING|PING hello|ECHO x|SELECT 0
        CLIENT GETNAME|CLIENT SETNAME me|CLIENT GETNAME|MGET a b|MSET a 1 b 2|MGET a b|FLUSHALL SYNC
    """
    with both(command) as clients:
        for line in commands.replace("\n", "|").split("|"):
            if words := line.split():
                ours, real = (answer(client, words) for client in clients)
                assert ours == real, words


def test_redis_cli(server: Server) -> None:
    def cli(*words: str, data: str = "") -> str:
        arguments = [tool("redis-cli"), "-p", str(server.port), *words]
        return subprocess.run(
            arguments, input=data, capture_output=True, text=True, check=True, timeout=60
        ).stdout

    assert cli("SET", "key", "value", "EX", "60") == "OK\n"
    assert cli("-3", "GET", "key") == "value\n"
    assert cli("-x", "SET", "long", data="x" * 300_000) == "OK\n"
    assert cli("STRLEN", "long") == "300000\n"
    assert cli(data="INCR n\nINCR n\nNONSENSE\n").startswith("1\n2\nERR unknown command")
    assert "redis_version" in cli("INFO", "server")
    assert cli("--scan").split() == ["key", "long", "n"] or len(cli("--scan").split()) == 3


def test_redis_benchmark(server: Server) -> None:
    arguments = ["-p", str(server.port), "-n", "2000", "-P", "16", "-d", "64", "--csv"]
    tests = ["-t", "ping_inline,ping_mbulk,set,get,incr,mset", "-r", "1000"]
    ended = subprocess.run(
        [tool("redis-benchmark"), *arguments, *tests],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    names = re.findall(r'^"([A-Z_]+)', ended.stdout, re.MULTILINE)
    assert names == ["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET"]
    assert "ERR" not in ended.stdout + ended.stderr
    assert server.client().dbsize() > 500


def test_a_simulated_pool_tells_virtual_latencies(command: Path) -> None:
    with serving(command, "--pool", "sim:edm?nodes=6") as server:
        client = server.client()
        client.set("key", "value")
        client.get("key")
        info = client.info("virtual")
        assert info["virtual_time_ns"] > 600
        get = info["virtual_latency_ns_get"]
        # Two reads of 300 ns and their memory accesses of 82 ns.
        assert get["count"] == 1
        assert 600 < get["p50"] < 1500
    with serving(command) as server:
        assert server.client().info("virtual") == {}


def test_who_sends_nonsense_is_told_and_nobody_else(server: Server) -> None:
    neighbour = server.client()
    neighbour.set("key", "value")
    told = [
        (b"*1\r\n$1073741824\r\n", b"-ERR Protocol error: invalid bulk length\r\n"),
        (b"*1\r\n$-5\r\n", b"-ERR Protocol error: invalid bulk length\r\n"),
        (b"*99999999\r\n", b"-ERR Protocol error: invalid multibulk length\r\n"),
        (b"*1\r\n:1\r\n", b"-ERR Protocol error: expected '$', got ':'\r\n"),
        (b"x" * 100_000, b"-ERR Protocol error: too big inline request\r\n"),
        (b'"\r\n', b"-ERR Protocol error: unbalanced quotes in request\r\n"),
        (b"PING\r\n*1\r\n$3\r\nx", None),
    ]
    for data, expected in told:
        if expected is None:
            with socket.create_connection(("127.0.0.1", server.port)) as stream:
                stream.sendall(data)
                assert stream.recv(100) == b"+PONG\r\n"
        else:
            assert server.raw(data) == expected
        assert neighbour.get("key") == b"value"


def test_half_a_command_of_a_client_that_is_gone_does_nothing(server: Server) -> None:
    """Complete commands before the error are executed, and nothing after it is."""
    whole = b"*3\r\n$3\r\nSET\r\n$4\r\nhalf\r\n$5\r\nvalue\r\n"
    neighbour = server.client()
    for end in range(1, len(whole)):
        with socket.create_connection(("127.0.0.1", server.port)) as stream:
            stream.sendall(b"SET before %d\r\n" % end + whole[:end])
            assert stream.recv(5) == b"+OK\r\n"
        assert (neighbour.get("before"), neighbour.exists("half")) == (b"%d" % end, 0)
    assert server.raw(whole + b"QUIT\r\n") == b"+OK\r\n+OK\r\n"
    assert neighbour.get("half") == b"value"


def test_ten_thousand_commands_at_once(server: Server) -> None:
    number = 10_000
    replies = server.raw(b"INCR n\r\n" * number + b"QUIT\r\n")
    expected = b"".join(b":%d\r\n" % count for count in range(1, number + 1))
    assert replies == expected + b"+OK\r\n"


def test_who_does_not_read_holds_nobody_up(command: Path) -> None:
    with serving(command) as server:
        neighbour = server.client()
        neighbour.set("long", b"x" * 1_000_000)
        with socket.create_connection(("127.0.0.1", server.port)) as stream:
            stream.sendall(b"GET long\r\n" * 10_000)
            for number in range(100):
                neighbour.set("other", number)
            status = Path(f"/proc/{server.process.pid}/status")
            if status.exists():
                found = re.search(r"VmRSS:\s+(\d+) kB", status.read_text())
                # Ten gigabytes were requested.
                assert found is not None
                assert int(found[1]) < 300_000


# The errors mean: not done, unknown, no store.
TOLD = (b"-ERR", b"-UNC", b"-LOA")


@pytest.mark.parametrize("index", ["client", "node"])
def test_who_asks_a_dead_memory_node_much_holds_nobody_up(command: Path, index: str) -> None:
    """The requests of one client alone would take the server an hour, each in vain."""
    with (
        memory_node(command) as (node, pool),
        serving(command, "--pool", f"{pool}?timeout_ms=400", "--index", index) as server,
    ):
        neighbour = server.client()
        neighbour.set("key", "value")
        node.kill()
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as stream:
            stream.sendall(b"GET key\r\n" * 10_000)
            assert stream.recv(4) in TOLD
            with pytest.raises((redis.ResponseError, redis.BusyLoadingError)):
                neighbour.get("key")
        with ExitStack() as stack:
            at = ("127.0.0.1", server.port)
            many = [
                stack.enter_context(socket.create_connection(at, timeout=30)) for _ in range(200)
            ]
            for stream in many:
                stream.sendall(b"SET key other\r\n")
            assert all(stream.recv(4) in TOLD for stream in many)
        # There is no store, and the server reports that.
        with pytest.raises(redis.BusyLoadingError):
            neighbour.ping()
        # The code is 130 if the client was waiting for the node at that moment.
        assert server.end() in (0, 130)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_ends_it(command: Path, name: str) -> None:
    with subprocess.Popen(
        [command, "kv", "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert "ready" in process.stderr.readline()
        process.send_signal(getattr(signal, name))
        assert process.wait(timeout=10) == 0
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--pool", "nothing:"], "--pool nothing:: scheme `nothing`: must be"),
        (["--pool", "sim:nothing"], "--pool sim:nothing: fabric `nothing`: must be"),
        (["--listen", "nowhere"], "'nowhere' for '--listen <ADDRESS:PORT>'"),
        (["--listen", "192.0.2.1:1"], "listening on 192.0.2.1:1: "),
        (["--clients-max", "0"], "must be 1 to 1000000"),
        (["--index", "both"], "possible values: client, node"),
        (["--pool", "local:?memory_bytes=100"], "no room for"),
    ],
)
def test_bad_input(command: Path, arguments: list[str], told: str) -> None:
    ended = subprocess.run(
        [command, "kv", *arguments], capture_output=True, text=True, check=False, timeout=30
    )
    assert ended.returncode == 2
    assert told in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
