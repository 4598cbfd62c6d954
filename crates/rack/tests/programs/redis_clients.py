"""A Redis server and its clients in one rack: values come back whole."""

import random
import socket
import subprocess
import sys
import tempfile
import time

CALLS = 3000


def free_port() -> int:
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        return some.getsockname()[1]


def main() -> None:
    port = str(free_port())
    with tempfile.TemporaryDirectory() as folder:
        words = ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", ""]
        server = subprocess.Popen([*words, "--dir", folder], stdout=subprocess.DEVNULL)
        try:
            check(port)
        finally:
            stop = ["redis-cli", "-h", "127.0.0.1", "-p", port, "shutdown", "nosave"]
            subprocess.run(stop, check=False, stdout=subprocess.DEVNULL)
            code = server.wait(30)
        assert code == 0, code


def check(port: str) -> None:
    for _ in range(200):
        try:
            end = socket.create_connection(("127.0.0.1", int(port)))
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    else:
        sys.exit("the server does not listen")
    seed = random.randrange(1 << 30)
    print(f"seed {seed}", flush=True)
    own = random.Random(seed)
    reader = end.makefile("rb")
    for number in range(CALLS):
        value = own.randbytes(own.choice([1, 100, 3000, 40_000]))
        key = b"key%d" % (number % 50)
        end.sendall(b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n" % (len(key), key, len(value)))
        end.sendall(value + b"\r\n*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n" % (len(key), key))
        assert reader.readline() == b"+OK\r\n"
        assert int(reader.readline()[1:]) == len(value)
        assert reader.read(len(value) + 2) == value + b"\r\n"
    load = ["redis-benchmark", "-h", "127.0.0.1", "-p", port, "-n", "5000", "-c", "20", "-q"]
    for more in (["-t", "set,get"], ["-t", "set,get", "-P", "16"], ["-t", "lrange_100"]):
        done = subprocess.run([*load, *more], check=True, capture_output=True, text=True)
        assert "requests per second" in done.stdout, done.stdout


main()
