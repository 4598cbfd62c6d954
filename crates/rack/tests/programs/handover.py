"""Sockets that another program takes over while bytes are unread in memory: handover.py CASE."""

import ctypes
import os
import select
import socket
import subprocess
import sys
import threading
import time

import cases

COPY = "while d := os.read(0, 3000): os.write(1, d)"
PROGRAM = [sys.executable, "-c", f"import os\n{COPY}"]


def numbers(count: int) -> bytes:
    return b"".join(b"%07d\n" % number for number in range(count))


def unread() -> None:
    """Bytes that are unread when a program takes the socket over come first, and none is lost."""
    server = cases.listener()
    data = numbers(20_000)
    for unread in (1, 5000, 40_000, len(data) - 1):
        for way in ("exec", "spawn", "pass"):
            client, accepted = cases.connected(server)
            if way == "exec":
                # Some bytes are in the kernel's socket, and an epoll set has armed the bell.
                epoll = select.epoll()
                epoll.register(accepted, select.EPOLLIN)
                assert not epoll.poll(0)
                epoll.close()
            # The new reader has some bytes to send of its own, which its end had sent before.
            accepted.sendall(b"first")
            got: list[bytes] = []
            thread = threading.Thread(target=exchange, args=(client, data, unread, got))
            thread.start()
            time.sleep(0.02)
            process = take_over(way, accepted)
            accepted.close()
            thread.join()
            assert got[0] == b"first" + data, (way, unread, len(got[0]))
            assert cases.ended(process) == 0


def exchange(client: socket.socket, data: bytes, unread: int, got: list[bytes]) -> None:
    """Sends a part before the take-over, and the rest at the same time; takes all of it back."""
    client.sendall(data[:unread])
    parts = []

    def receive() -> None:
        while part := client.recv(10_000):
            parts.append(part)

    thread = threading.Thread(target=receive)
    thread.start()
    for start in range(unread, len(data), 1000):
        client.sendall(data[start : min(start + 1000, len(data))])
        if start % 7 == 0:
            time.sleep(0.0003)
    client.shutdown(socket.SHUT_WR)
    thread.join()
    got.append(b"".join(parts))


def take_over(way: str, end: socket.socket) -> int:
    if way == "exec":

        def run() -> None:
            os.dup2(end.fileno(), 0)
            os.dup2(end.fileno(), 1)
            os.execv(PROGRAM[0], PROGRAM)

        return cases.child(run)
    if way == "spawn":
        return subprocess.Popen(PROGRAM, stdin=end, stdout=end).pid
    one, other = socket.socketpair()

    def serve() -> None:
        end.close()
        _, fds, _, _ = socket.recv_fds(other, 1, 1)
        got = socket.socket(fileno=fds[0])
        poller = select.poll()
        poller.register(got, select.POLLIN)
        assert poller.poll(5000), "bytes are here"
        while data := got.recv(3000):
            got.sendall(data)

    process = cases.child(serve)
    socket.send_fds(one, [b"x"], [end.fileno()])
    return process


def stranded() -> None:
    """A program without the library gets an error, never a stream with a gap."""
    client, accepted = cases.connected(cases.listener())
    client.sendall(b"unread")
    code = "import os\ntry: os.read(0, 9)\nexcept ConnectionResetError: os._exit(7)"
    words = [sys.executable, "-c", code]
    process = subprocess.Popen(words, stdin=accepted, env={"PATH": os.environ["PATH"]})
    assert process.wait() == 7
    try:
        client.recv(1)
        raise AssertionError("the other end gets an error, too")
    except ConnectionResetError:
        pass

    # A stream of the C library reads by itself.
    client, accepted = cases.connected(cases.listener())
    accepted.sendall(b"unread")
    library = ctypes.CDLL(None)
    library.fdopen.restype = ctypes.c_void_p
    stream = library.fdopen(os.dup(client.fileno()), b"r")
    assert stream and library.fgetc(ctypes.c_void_p(stream)) == -1
    assert library.fclose(ctypes.c_void_p(stream)) == 0


CASES = (unread, stranded)

if __name__ == "__main__":
    {case.__name__: case for case in CASES}[sys.argv[1]]()
