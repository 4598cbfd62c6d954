"""A peer that may write anything anywhere in a connection's memory, at any time.

lies.py SEED CONNECTIONS. The liar is a process with its own end, so with the memory. A thread of it
stores into every shared word while this process sends, receives, waits, shuts down and closes. Each
call must end in time, with a result that its arguments allow or an error that a socket can have.
"""

import ctypes
import errno
import faulthandler
import os
import random
import select
import signal
import socket
import struct
import sys
import threading
import time

import buffers

HOST = "127.0.0.1"
# The layout of the memory: crates/rack/preload/conn.rs and crates/rack/src/line.rs.
HEADER = (0, 8, 16)
LINES = (1024, 1536)
# head, turn, both ends, start, rung; tail, turn; bell; both waits.
WORDS = (0, 8, 16, 24, 32, 40, 128, 136, 256, 384)
MEMORY_HEADER_BYTES = 4096
CLOSED = 1 << 63
MASK = (1 << 64) - 1
# Longest time of a call that has a limit of its own, on a busy machine; and of any call.
LIMITED_S = 4
CALL_S = 10
ERRORS = {
    *(errno.EAGAIN, errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN, errno.EINTR),
    *(errno.ETIMEDOUT, errno.EINVAL, errno.ENOBUFS),
}


def mappings() -> list[tuple[int, int]]:
    found = []
    with open("/proc/self/maps") as maps:
        for line in maps:
            if "memfd:ethermem-rack" in line:
                start, end = line.split()[0].split("-")
                found.append((int(start, 16), int(end, 16)))
    return found


def lie(own: random.Random, end: socket.socket, seconds: float) -> None:
    """Stores random words for a while, and sends bytes that no library has counted."""
    memory = mappings()
    assert memory, "the connection is in memory"
    start, stop = memory[-1]
    words = (ctypes.c_uint64 * ((stop - start) // 8)).from_address(start)
    ring_bytes = (stop - start - MEMORY_HEADER_BYTES) // 2
    until = time.monotonic() + seconds
    # Some liars attack one word, some all of them; some as fast as they can.
    places = [line + word for line in LINES for word in WORDS] + list(HEADER)
    if own.random() < 0.5:
        places = own.sample(places, own.randrange(1, 4))
    quiet = own.choice([0, 0, 0.0001, 0.005])
    # A whole turn that looks right, but for bells that were never sent.
    if own.random() < 0.05:
        line = LINES[0] // 8
        words[line + 3] = words[line]
        words[line + 4] += own.choice([1, 5, 1 << 31])
        words[line + 1] += 1
        time.sleep(LIMITED_S + 1)
    while time.monotonic() < until:
        for _ in range(50):
            at = own.choice(places) // 8
            now = words[at]
            way = own.randrange(9)
            if way == 0:
                value = own.randrange(1 << 64)
            elif way == 1:
                value = own.choice([0, 1, 2, 3, MASK, CLOSED, CLOSED - 1, ring_bytes])
            elif way == 2:
                value = now ^ 1 << own.randrange(64)
            elif way == 3:
                value = words[own.choice(places) // 8] + own.choice([-1, 0, 1])
            elif way == 4:
                value = now + ring_bytes + own.choice([-1, 0, 1])
            elif way == 5:
                value = now ^ CLOSED
            else:
                value = now + own.choice([-2, -1, 1, 2, 64])
            words[at] = value & MASK
            if own.random() < 0.01:
                words[own.randrange(MEMORY_HEADER_BYTES // 8, len(words))] = value & MASK
            if quiet:
                time.sleep(quiet)


def liar(seed: int, port: int) -> None:
    own = random.Random(seed)
    end = socket.create_connection((HOST, port))
    for _ in range(3):
        end.sendall(b"hello")
        assert end.recv(5) == b"hello"
    seconds = own.choice([0.01, 0.03, 0.1])
    thread = threading.Thread(target=lie, args=(own, end, seconds))
    thread.start()
    raw = ctypes.CDLL(None).syscall
    end.setblocking(False)
    other = random.Random(seed + 1)
    while thread.is_alive():
        way = other.randrange(8)
        try:
            if way < 3:
                end.send(other.randbytes(other.choice([1, 100, 5000])))
            elif way < 6:
                end.recv(other.choice([1, 100, 5000]))
            elif way == 6:
                # Bytes behind the library's back, which look like bells.
                raw(44, end.fileno(), bytes(8), other.randrange(1, 8), 0x4040, 0, 0)
            else:
                time.sleep(0.001)
        except OSError:
            time.sleep(0.001)
    thread.join()
    if own.random() < 0.3:
        os.kill(os.getpid(), signal.SIGKILL)


def receive(own: random.Random, end: socket.socket) -> None:
    size = own.choice([1, 100, 5000, 100_000])
    room = bytearray(b"\xa5" * (size + 32))
    flags = own.choice([0, 0, 0, socket.MSG_PEEK, socket.MSG_DONTWAIT, socket.MSG_WAITALL])
    got = end.recv_into(memoryview(room)[16 : 16 + size], size, flags)
    assert 0 <= got <= size, (got, size)
    untouched = room[:16] + room[16 + got :]
    assert untouched == b"\xa5" * (size + 32 - got), "bytes outside of the result"


def wait(own: random.Random, end: socket.socket) -> None:
    way = own.randrange(4)
    limit = own.choice([0, 0.001, 0.02])
    if way == 0:
        poller = select.poll()
        poller.register(end, select.POLLIN | own.choice([0, select.POLLOUT]))
        poller.poll(limit * 1000)
    elif way == 1:
        select.select([end], own.choice([[], [end]]), [], limit)
    elif way == 2:
        with select.epoll() as epoll:
            epoll.register(end, select.EPOLLIN | own.choice([0, select.EPOLLET]))
            epoll.poll(limit)
    else:
        other = os.dup(end.fileno())
        os.close(other)


def refer(own: random.Random, end: socket.socket, held: list[int]) -> None:
    """The calls by reference; what they return is touched."""
    fd, way = end.fileno(), own.randrange(4)
    size = own.choice([1, 64, 3000])
    if way == 0:
        buffer = buffers.alloc(fd, size)
        try:
            ctypes.memset(buffer, 1, size)
            buffers.build(fd, buffer, size)
        except OSError:
            buffers.free(fd, buffer)
            raise
    elif way < 3:
        at, length = buffers.receive(end, size, socket.MSG_DONTWAIT)
        assert 0 <= length <= size
        if length:
            ctypes.string_at(at, length)
            held.append(at)
    elif held:
        buffers.free(fd, held.pop(own.randrange(len(held))))


def use(own: random.Random, end: socket.socket, held: list[int]) -> None:
    """One call."""
    way = own.randrange(26)
    if way >= 20:
        return refer(own, end, held)
    if way < 6:
        size = own.choice([1, 100, 5000, 100_000])
        sent = end.send(bytes(size), own.choice([0, socket.MSG_DONTWAIT]))
        assert 0 < sent <= size, (sent, size)
    elif way < 13:
        receive(own, end)
    elif way < 18:
        wait(own, end)
    elif way == 18 and own.random() < 0.1:
        if own.random() < 0.5:
            end.shutdown(own.choice([socket.SHUT_WR, socket.SHUT_RD]))
        else:
            # The return to the kernel, which reads the liar's words, too.
            one, other = socket.socketpair()
            socket.send_fds(one, [b"x"], [end.fileno()])
            _, fds, _, _ = socket.recv_fds(other, 1, 1)
            os.close(fds[0])
            one.close()
            other.close()
    else:
        end.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)


def main() -> None:
    seed, connections = int(sys.argv[1]), int(sys.argv[2])
    print(f"seed {seed}", flush=True)
    own = random.Random(seed)
    listener = socket.socket()
    listener.bind((HOST, 0))
    listener.listen()
    calls, longest = 0, 0.0
    limit = struct.pack("ll", 0, 20_000)
    for number in range(connections):
        process = os.fork()
        if process == 0:
            code = 1
            try:
                liar(seed * 1_000_003 + number, listener.getsockname()[1])
                code = 0
            finally:
                os._exit(code)
        end, _ = listener.accept()
        for _ in range(3):
            end.sendall(end.recv(5))
        is_limited = own.random() < 0.85
        if own.random() < 0.7 and is_limited:
            for name in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
                end.setsockopt(socket.SOL_SOCKET, name, limit)
        elif is_limited:
            end.setblocking(False)
        held: list[int] = []
        for _ in range(own.randrange(1, 300)):
            # A blocking call without a limit ends when the liar does; one with a limit ends by it.
            faulthandler.dump_traceback_later(CALL_S, exit=True)
            begun = time.monotonic()
            try:
                use(own, end, held)
            except OSError as error:
                assert error.errno in ERRORS, error
            took = time.monotonic() - begun
            assert took < LIMITED_S or not is_limited, f"seed {seed}, {number}: {took} s"
            longest = max(longest, took)
            calls += 1
        faulthandler.dump_traceback_later(CALL_S, exit=True)
        end.close()
        faulthandler.dump_traceback_later(CALL_S, exit=True)
        ended = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        assert ended in (0, -signal.SIGKILL), f"seed {seed}, connection {number}: {ended}"
    faulthandler.cancel_dump_traceback_later()
    print(f"{calls} calls, the longest took {longest:.3f} s")


main()
