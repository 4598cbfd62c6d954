"""Programs of two racks. `serve` is a program of one rack, the cases are programs of the other."""

import errno
import hashlib
import random
import select
import socket
import struct
import sys
import threading
import time

CONNECT_S = 20


def serve(address, port):
    listener = socket.create_server((address, port), backlog=64)
    while True:
        end, peer = listener.accept()
        threading.Thread(target=answer, args=(end, peer), daemon=True).start()


def line(end):
    """A line, and no byte behind it."""
    text = b""
    while not text.endswith(b"\n"):
        byte = end.recv(1)
        if not byte:
            return ""
        text += byte
    return text.decode().strip()


def read_all(end):
    digest, count = hashlib.sha256(), 0
    while part := end.recv(1 << 20):
        digest.update(part)
        count += len(part)
    return digest.hexdigest(), count


def answer(end, peer):
    words = line(end).split()
    if not words:
        return
    if words[0] == "names":
        names = [peer, end.getpeername(), end.getsockname()]
        end.sendall(";".join(f"{host}:{port}" for host, port in names).encode())
    elif words[0] in ("sink", "slow"):
        if words[0] == "slow":
            time.sleep(float(words[1]))
        digest, count = read_all(end)
        # The other direction is open still.
        end.sendall(f"{digest} {count}".encode())
    elif words[0] == "source":
        data = random.Random(int(words[2])).randbytes(1 << 20)
        for _ in range(int(words[1])):
            end.sendall(data)
        end.shutdown(socket.SHUT_WR)
        assert end.recv(1) == b"", "the client closes last"
    elif words[0] == "reset":
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    elif words[0] == "echo":
        while part := end.recv(1 << 16):
            end.sendall(part)
    elif words[0] == "hold":
        end.sendall(b"x")
        try:
            end.recv(1)
        except ConnectionResetError:
            print("the server's end was reset", flush=True)
    end.close()


def connect(server, words):
    """Connects, also while the server does not listen yet, and says what it wants."""
    until = time.monotonic() + CONNECT_S
    while True:
        try:
            end = socket.create_connection(server, 30)
            break
        except ConnectionRefusedError:
            assert time.monotonic() < until, "no server"
            time.sleep(0.05)
    end.settimeout(30)
    end.sendall(words.encode() + b"\n")
    return end


def names(server):
    end = connect(server, "names")
    assert end.getpeername() == server, end.getpeername()
    host, port = end.getsockname()
    text = end.recv(1000).decode()
    own, other = f"{host}:{port}", f"{server[0]}:{server[1]}"
    assert text == f"{own};{own};{other}", (text, own, other)
    assert end.recv(1) == b""


def send(server, words, total, seed):
    """Sends pieces of many sizes; both ends agree on the bytes."""
    print(f"RACKS_SEED={seed}")
    chance, digest = random.Random(seed), hashlib.sha256()
    data = chance.randbytes(1 << 20)
    end = connect(server, words)
    left = total
    while left > 0:
        size = min(left, chance.choice([1, 100, 5000, 70000, 1 << 20]))
        at = chance.randrange((1 << 20) - size + 1)
        end.sendall(data[at : at + size])
        digest.update(data[at : at + size])
        left -= size
    end.shutdown(socket.SHUT_WR)
    assert end.recv(1000).decode() == f"{digest.hexdigest()} {total}"
    assert end.recv(1) == b"", "the server has closed, too"


def receive(server, mebibytes):
    data, digest = random.Random(5).randbytes(1 << 20), hashlib.sha256()
    for _ in range(mebibytes):
        digest.update(data)
    end = connect(server, f"source {mebibytes} 5")
    assert read_all(end) == (digest.hexdigest(), mebibytes << 20)


def many(server):
    """Small messages on many connections at once."""

    def talk(number):
        end = connect(server, "echo")
        chance = random.Random(number)
        for _ in range(50):
            message = chance.randbytes(chance.choice([1, 64, 1000, 20000]))
            end.sendall(message)
            got = b""
            while len(got) < len(message):
                got += end.recv(len(message) - len(got))
            assert got == message
        end.close()
        done.append(number)

    done = []
    threads = [threading.Thread(target=talk, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 24


def nonblocking(server):
    for wait in ("poll", "epoll"):
        end = socket.socket()
        end.setblocking(False)
        assert end.connect_ex(server) in (0, errno.EINPROGRESS)
        if wait == "poll":
            poll = select.poll()
            poll.register(end, select.POLLOUT)
            assert poll.poll(10000) == [(end.fileno(), select.POLLOUT)]
        else:
            poll = select.epoll()
            poll.register(end, select.EPOLLOUT | select.EPOLLET)
            assert poll.poll(10) == [(end.fileno(), select.EPOLLOUT)]
        assert end.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
        end.setblocking(True)
        end.sendall(b"echo\nabc")
        assert end.recv(3, socket.MSG_WAITALL) == b"abc"
        end.close()


def refused(server):
    """Nothing listens there: the kernel's error, also of a call that does not block."""
    nobody = (server[0], 1)
    assert socket.socket().connect_ex(nobody) == errno.ECONNREFUSED
    end = socket.socket()
    end.setblocking(False)
    assert end.connect_ex(nobody) == errno.EINPROGRESS
    select.select([], [end], [], 10)
    assert end.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED


def reset(server):
    end = connect(server, "reset")
    try:
        end.recv(1)
    except ConnectionResetError:
        return
    raise AssertionError("no reset")


def killed(server, told):
    """The processes between the racks are killed."""
    end = connect(server, "hold")
    assert end.recv(1) == b"x"
    with open(told, "w") as file:
        file.write("now")
    try:
        end.recv(1)
    except ConnectionResetError:
        return
    raise AssertionError("no reset")


def slow(server):
    """A reader that sleeps holds no other stream up."""
    sleeper = threading.Thread(target=send, args=(server, "slow 2", 40 << 20, 3))
    begun = time.monotonic()
    sleeper.start()
    receive(server, 20)
    names(server)
    assert time.monotonic() - begun < 2, time.monotonic() - begun
    sleeper.join()


def main():
    case, server = sys.argv[1], (sys.argv[2], int(sys.argv[3]))
    rest = sys.argv[4:]
    failed = []
    threading.excepthook = lambda args: (sys.__excepthook__(*args[:3]), failed.append(args))
    if case == "serve":
        serve(*server)
    elif case == "send":
        send(server, "sink", int(rest[0]), int(rest[1]))
    elif case == "receive":
        receive(server, int(rest[0]))
    elif case == "calls":
        for check in (names, many, nonblocking, refused, reset, slow):
            print(check.__name__, flush=True)
            check(server)
    else:
        {"names": names, "killed": killed}[case](server, *rest)
    assert not failed, failed


main()
