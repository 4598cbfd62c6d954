"""Buffers by reference, by the calls of `ethermem_rack.h`: buffers.py CASE [SEED]."""

import ctypes
import errno
import hashlib
import os
import random
import select
import signal
import socket
import struct
import sys
import threading
import time

HOST = "127.0.0.1"
LIBRARY = ctypes.CDLL(None, use_errno=True)
REFERENCES = 64


def function(name: str, result, arguments):
    found = getattr(LIBRARY, name)
    found.restype, found.argtypes = result, arguments

    def call(*given):
        ctypes.set_errno(0)
        value = found(*given)
        error = ctypes.get_errno()
        if value is None or (isinstance(value, int) and value < 0):
            raise OSError(error, os.strerror(error))
        return value

    return call


alloc = function("alloc_shared_buffer", ctypes.c_void_p, [ctypes.c_int, ctypes.c_size_t])
build = function(
    "build_shared_skb", ctypes.c_ssize_t, [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]
)
receive_to = function(
    "recv_shared_skb",
    ctypes.c_ssize_t,
    [ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t, ctypes.c_int],
)
free = function("kfree_shared_skb", ctypes.c_int, [ctypes.c_int, ctypes.c_void_p])


def receive(end: socket.socket, most: int, flags: int = 0) -> tuple[int, int]:
    at = ctypes.c_void_p()
    length = receive_to(end.fileno(), ctypes.byref(at), most, flags)
    return at.value or 0, length


def send(end: socket.socket, data: bytes) -> None:
    buffer = alloc(end.fileno(), len(data))
    ctypes.memmove(buffer, data, len(data))
    assert build(end.fileno(), buffer, len(data)) == len(data)


def fails(code: int, call, *arguments) -> None:
    try:
        call(*arguments)
    except OSError as error:
        assert error.errno == code, error
    else:
        raise AssertionError(f"must fail with {errno.errorcode[code]}")


def connected(address: str = HOST) -> tuple[socket.socket, socket.socket]:
    with socket.socket() as listener:
        listener.bind((address, 0))
        listener.listen()
        client = socket.create_connection(listener.getsockname(), source_address=(address, 0))
        server, _ = listener.accept()
    for one, other in ((client, server), (server, client), (client, server)):
        one.sendall(b"hello")
        assert other.recv(5) == b"hello"
    return client, server


def mixed() -> None:
    """Bytes and references in one stream, freed in any order, by memory and by the kernel."""
    seed = int(sys.argv[2])
    print(f"seed {seed}", flush=True)
    for round_ in range(12):
        # The kernel carries all of the second address.
        pair = connected(HOST if round_ % 4 else "127.0.0.2")
        # Another return to the kernel, while both ends go on.
        if round_ % 4 == 2:
            threading.Timer(0.01, pass_on, (pair[round_ // 4 % 2],)).start()
        digests: dict[str, str] = {}
        threads = [
            threading.Thread(target=put, args=(random.Random(seed + round_), pair[0], digests)),
            threading.Thread(target=take, args=(random.Random(seed - round_), pair[1], digests)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert digests["put"] == digests["take"], round_
        for end in pair:
            end.close()


def pass_on(end: socket.socket) -> None:
    one, other = socket.socketpair()
    socket.send_fds(one, [b"x"], [end.fileno()])
    one.close()
    other.close()


def put(own: random.Random, end: socket.socket, digests: dict[str, str]) -> None:
    digest = hashlib.sha256()
    for _ in range(1500):
        data = own.randbytes(own.choice([1, 64, 700, 3000, 20_000]))
        digest.update(data)
        way = own.randrange(8)
        if way < 2:
            end.sendall(data)
        elif way == 2:
            # Bytes that are sent while a buffer is reserved come before it.
            buffer = alloc(end.fileno(), 10)
            ctypes.memmove(buffer, b"0123456789", 10)
            end.sendall(data)
            digest.update(b"0123456789")
            build(end.fileno(), buffer, 10)
        elif way == 3:
            free(end.fileno(), alloc(end.fileno(), 100))
            send(end, data)
        else:
            send(end, data)
    end.shutdown(socket.SHUT_WR)
    digests["put"] = digest.hexdigest()


def take(own: random.Random, end: socket.socket, digests: dict[str, str]) -> None:
    digest = hashlib.sha256()
    held: list[tuple[int, bytes]] = []

    def give_back() -> None:
        at, data = held.pop(own.randrange(len(held)))
        assert ctypes.string_at(at, len(data)) == data, "a held buffer has changed"
        free(end.fileno(), at)

    while True:
        if own.randrange(4) == 0:
            data = end.recv(own.choice([1, 500, 5000]))
        else:
            at, length = receive(end, own.choice([1, 64, 5000, 1 << 20]))
            data = ctypes.string_at(at, length)
            if length:
                held.append((at, data))
        if not data:
            break
        digest.update(data)
        while held and (len(held) == REFERENCES or own.randrange(3)):
            give_back()
    while held:
        give_back()
    digests["take"] = digest.hexdigest()


def misused() -> None:
    client, server = connected()
    fd = client.fileno()
    fails(errno.EINVAL, alloc, fd, 0)
    fails(errno.EMSGSIZE, alloc, fd, 1 << 40)
    buffer = alloc(fd, 100)
    fails(errno.EBUSY, alloc, fd, 100)
    fails(errno.EINVAL, build, fd, buffer, 101)
    fails(errno.EINVAL, build, fd, buffer + 1, 10)
    fails(errno.EINVAL, build, fd, buffer, 0)
    fails(errno.EINVAL, build, fd, 4096, 10)
    fails(errno.EINVAL, free, fd, 4096)
    fails(errno.EINVAL, free, server.fileno(), buffer)
    free(fd, buffer)
    fails(errno.EINVAL, free, fd, buffer)
    fails(errno.EAGAIN, receive, server, 10, socket.MSG_DONTWAIT)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 50_000))
    begun = time.monotonic()
    fails(errno.EAGAIN, receive, server, 10)
    assert 0.04 < time.monotonic() - begun < 2
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, bytes(16))
    for number in range(REFERENCES + 1):
        send(client, bytes([number]) * 8)
    held = [receive(server, 8)[0] for _ in range(REFERENCES)]
    fails(errno.ENOBUFS, receive, server, 8)
    assert server.recv(8) == bytes([REFERENCES]) * 8, "bytes can be received all the same"
    fails(errno.EINVAL, free, server.fileno(), held[5] + 1)
    for number in (5, 0, *range(1, 5), *range(6, REFERENCES)):
        assert ctypes.string_at(held[number], 8) == bytes([number]) * 8
        free(server.fileno(), held[number])
        fails(errno.EINVAL, free, server.fileno(), held[number])
    # A socket that sleeps is woken, and so is one that polls.
    threading.Timer(0.2, send, (client, b"late")).start()
    at, length = receive(server, 100)
    assert ctypes.string_at(at, length) == b"late"
    free(server.fileno(), at)
    threading.Timer(0.2, send, (client, b"polled")).start()
    assert select.select([server], [], [], 5)[0]
    at, length = receive(server, 100)
    assert ctypes.string_at(at, length) == b"polled"
    client.close()
    assert receive(server, 100) == (0, 0)
    fails(errno.EBADF, receive, client, 100)
    with socket.socket() as other:
        fails(errno.ENOTCONN, receive, other, 100)


def pinned() -> None:
    """What a program holds does not change, however much its peer sends."""
    client, server = connected()
    send(client, b"h" * 1000)
    at, length = receive(server, 1000)
    for _ in range(300):
        send(client, b"x" * 1000)
    got = 0
    while got < 300_000:
        got += len(server.recv(1 << 20))
    assert ctypes.string_at(at, length) == b"h" * length and got == 300_000
    free(server.fileno(), at)


def died() -> None:
    """A peer that is killed with references and a buffer in its hands: the other end goes on."""
    for _ in range(20):
        client, server = connected()
        for _ in range(10):
            send(client, b"y" * 300)
        reader, writer = os.pipe()
        process = os.fork()
        if process == 0:
            for _ in range(10):
                receive(server, 300)
            alloc(server.fileno(), 100)
            os.write(writer, b"x")
            time.sleep(60)
        server.close()
        os.read(reader, 1)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        buffer = alloc(client.fileno(), 500)
        try:
            while True:
                build(client.fileno(), buffer, 500)
                buffer = alloc(client.fileno(), 500)
        except (BrokenPipeError, ConnectionResetError):
            free(client.fileno(), buffer)
        os.close(reader)
        os.close(writer)
        client.close()


CASES = (mixed, misused, pinned, died)

if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    {case.__name__: case for case in CASES}[sys.argv[1]]()
