"""Random calls on a connection in memory, and on one of the kernel: the results must be equal.

Both connections are in this process. The rack has the first address and not the second one, so the
kernel carries the second connection, and is the oracle. Usage: torture.py SEED CALLS.
"""

import array
import errno
import fcntl
import os
import random
import select
import socket
import sys
import tempfile
import termios
import time

ADDRESSES = ("127.0.0.1", "127.0.0.2")
# Bytes in flight stay below what the kernel's buffers surely take.
IN_FLIGHT_BYTES_MAX = 48 << 10


class Pair:
    """Both ends of one connection."""

    def __init__(self, address: str, listener: socket.socket) -> None:
        client = socket.socket()
        client.bind((address, 0))
        client.connect(listener.getsockname())
        server, _ = listener.accept()
        self.ends = [client, server]
        self.epolls = [select.epoll(), select.epoll()]
        for end, epoll in zip(self.ends, self.epolls, strict=True):
            end.setblocking(False)
            # Nagle's algorithm would hold the oracle's bytes back.
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            epoll.register(end, select.EPOLLIN)

    def close(self) -> None:
        for one in self.ends + self.epolls:
            one.close()


def attempt(call):
    """The result of a call, or its error."""
    try:
        return call()
    except OSError as error:
        return errno.errorcode[error.errno]


def summary(result):
    """A result without its bytes."""
    if isinstance(result, tuple):
        return tuple(summary(part) for part in result)
    return f"{len(result)} B: {result[:8]!r}" if isinstance(result, bytes) else result


def readable(end: socket.socket) -> int:
    if end.fileno() < 0:
        return 0
    count = array.array("i", [0])
    fcntl.ioctl(end, termios.FIONREAD, count)
    return count[0]


def arrived(pairs, side, count):
    """Waits for the bytes of the kernel's own queues, for a while. False if some are missing."""
    until = time.monotonic() + 5
    while any(readable(pair.ends[side]) != count for pair in pairs):
        if time.monotonic() > until:
            return False
    return True


def send(random_, end, data, file):
    way = random_.randrange(6)
    if way == 0:
        return end.send(data)
    if way == 1:
        return os.write(end.fileno(), data)
    if way == 2:
        middle = len(data) // 2
        return os.writev(end.fileno(), [data[:middle], data[middle:]])
    if way == 3:
        return end.sendmsg([data[:1], b"", data[1:]])
    if way == 4:
        # The kernel sends the file's own pages: they must not change later.
        at = os.fstat(file.fileno()).st_size
        os.pwrite(file.fileno(), data, at)
        return os.sendfile(end.fileno(), file.fileno(), at, len(data))
    return end.sendto(data, socket.MSG_DONTWAIT, ("127.0.0.9", 9))


def receive(random_, end, size):
    way = random_.randrange(7)
    if way == 0:
        return end.recv(size)
    if way == 1:
        return os.read(end.fileno(), size)
    if way == 2:
        parts = [bytearray(size // 2), bytearray(size - size // 2)]
        got = os.readv(end.fileno(), parts)
        return b"".join(parts)[:got]
    if way == 3:
        return end.recvmsg(size)[0]
    if way == 4:
        return end.recvfrom(size)
    if way == 5:
        return end.recv(min(size, max(1, readable(end))), socket.MSG_WAITALL)
    size = min(size, 2048)
    seen = end.recv(size, socket.MSG_PEEK)
    got = end.recv(size)
    # A peek may be short where the bytes change their way.
    assert got.startswith(seen) and bool(seen) == bool(got)
    return got


def states(end, epoll):
    """What poll, select and epoll say at once."""
    if end.fileno() < 0:
        return "closed"
    poller = select.poll()
    poller.register(end, select.POLLIN | select.POLLOUT | select.POLLRDHUP)
    found = [(events,) for _, events in poller.poll(0)]
    reads, writes, errors = select.select([end], [end], [end], 0)
    edge = [(events,) for _, events in epoll.poll(0)]
    return found, len(reads), len(writes), len(errors), edge, readable(end)


def passed(pair, side):
    """Replaces an end by a copy that was passed by a Unix socket: memory returns to the kernel."""
    end, epoll = pair.ends[side], pair.epolls[side]
    epoll.unregister(end)
    one, other = socket.socketpair()
    socket.send_fds(one, [b"x"], [end.fileno()])
    _, fds, _, _ = socket.recv_fds(other, 1, 1)
    one.close()
    other.close()
    end.close()
    pair.ends[side] = socket.socket(fileno=fds[0])
    pair.ends[side].setblocking(False)
    epoll.register(pair.ends[side], select.EPOLLIN)


def option(random_, pair, side):
    way, end = random_.randrange(4), pair.ends[side]
    if way == 3 and end.fileno() >= 0 and random_.random() < 0.1:
        return passed(pair, side)
    if way == 0:
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if way == 1:
        other = os.dup(end.fileno())
        os.close(other)
    if way == 2:
        return end.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    return bool(end.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))


def main() -> None:
    seed, calls = int(sys.argv[1]), int(sys.argv[2])
    print(f"seed {seed}", flush=True)
    random_ = random.Random(seed)
    listeners = []
    for address in ADDRESSES:
        listener = socket.socket()
        listener.bind((address, 0))
        listener.listen()
        listeners.append(listener)
    files = [tempfile.TemporaryFile(), tempfile.TemporaryFile()]
    done = 0
    while done < calls:
        pairs = [Pair(*both) for both in zip(ADDRESSES, listeners, strict=True)]
        flight = [0, 0]
        # After a reset, what arrives before it is a race of the kernel's own queues.
        is_over, is_reset = False, False
        for _ in range(random_.randrange(1, 400)):
            done += 1
            side, kind = random_.randrange(2), random_.randrange(20)
            own = random_.randrange(1 << 30)
            if kind < 8:
                size = random_.choice([1, 64, 1000, 4096, 9000])
                if flight[side] + size > IN_FLIGHT_BYTES_MAX:
                    continue
                is_reset = is_reset or is_over
                data = random_.randbytes(size)

                def call(index, data=data, own=own, side=side):
                    pair = pairs[index]
                    return send(random.Random(own), pair.ends[side], data, files[index])
            elif kind < 15:
                size = random_.choice([1, 50, 3000, 4096, 20000])

                def call(index, size=size, own=own, side=side):
                    return receive(random.Random(own), pairs[index].ends[side], size)
            elif kind < 18:

                def call(index, side=side):
                    return states(pairs[index].ends[side], pairs[index].epolls[side])
            elif kind < 19:

                def call(index, own=own, side=side):
                    return option(random.Random(own), pairs[index], side)
            elif random_.random() < 0.05:
                how = random_.choice([socket.SHUT_WR, socket.SHUT_RDWR, None])
                is_over = is_over or how != socket.SHUT_WR
                is_reset = is_reset or (how is None and flight[1 - side] > 0)

                def call(index, how=how, side=side):
                    end = pairs[index].ends[side]
                    return end.close() if how is None else end.shutdown(how)
            else:
                continue
            if 8 <= kind < 18 and not is_over and not arrived(pairs, side, flight[1 - side]):
                counts = [readable(pair.ends[side]) for pair in pairs]
                sys.exit(f"seed {seed}, call {done}, side {side}: {counts} of {flight[1 - side]}")
            results = [attempt(lambda index=index, call=call: call(index)) for index in range(2)]
            if results[0] != results[1] and not is_reset:
                what = [summary(result) for result in results]
                sys.exit(f"seed {seed}, call {done}, kind {kind}, side {side}: {what}")
            if kind < 8 and isinstance(results[0], int):
                flight[side] += results[0]
            if kind in range(8, 15) and isinstance(results[0], bytes | tuple):
                got = results[0] if isinstance(results[0], bytes) else results[0][0]
                flight[1 - side] -= len(got)
        for pair in pairs:
            pair.close()
        for file in files:
            file.truncate(0)
    print(f"{done} calls without a difference")


main()
