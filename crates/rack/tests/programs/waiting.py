"""Programs that wait for several sockets, and full rings of programs that do not wait: CASE."""

import os
import random
import select
import socket
import sys
import threading
import time

import cases


def changed() -> None:
    """What a program asks of a set replaces what the set was owed for the socket."""
    server = cases.listener()
    both = select.EPOLLIN | select.EPOLLOUT
    for _ in range(20):
        client, accepted = cases.connected(server)
        with select.epoll() as epoll:
            cases.silently(client, accepted, b"bc")
            epoll.register(client, select.EPOLLIN)
            assert epoll.poll(5) == [(client.fileno(), select.EPOLLIN)]
            assert cases.take(client, 2) == b"bc"
            epoll.modify(client, both)
            for _ in range(3):
                assert epoll.poll(1) == [(client.fileno(), select.EPOLLOUT)]
            epoll.modify(client, select.EPOLLIN)
            cases.silently(client, accepted, b"de")
            epoll.modify(client, both)
            assert epoll.poll(5) == [(client.fileno(), both)]
            epoll.unregister(client)
            assert epoll.poll(0) == [], "a socket that has left the set"
            assert cases.take(client, 2) == b"de"


def looks() -> None:
    """A thread that only looks needs no bell; one that sleeps after it is woken."""
    client, accepted = cases.connected(cases.listener())
    poll = select.poll()
    poll.register(client, select.POLLIN)
    for number in range(2000):
        assert poll.poll(0) == []
        accepted.sendall(b"%4d" % number)
        assert poll.poll(0) == [(client.fileno(), select.POLLIN)]
        assert select.select([client], [], [], 0)[0] == [client]
        assert client.recv(9) == b"%4d" % number
    sleeper = threading.Thread(target=lambda: poll.poll(5) and client.recv(4))
    sleeper.start()
    time.sleep(0.05)
    accepted.sendall(b"last")
    sleeper.join(2)
    assert not sleeper.is_alive()


def overfull() -> None:
    """The stream is back in memory while the kernel still has bytes of it, and in order."""
    server = cases.listener()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client, accepted = cases.connected(server)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    client.setblocking(False)
    text = random.Random(1).randbytes(600_000)
    sent = 0
    while sent < 164_000:
        sent += client.send(text[sent : sent + 10_000])
    # The ring's bytes, and some of the kernel's: the rest does not fit into the other end's socket.
    got = cases.take(accepted, (64 << 10) + 100)
    before = sent
    while sent < before + 60_000:
        sent += client.send(text[sent : sent + 10_000])
    got += cases.take(accepted, sent - len(got))
    assert got == text[:sent]
    assert select.select([accepted], [], [], 0)[0] == []


def whole() -> None:
    """A call takes all that is here, also more than the library copies at once."""
    client, accepted = cases.connected(cases.listener())
    client.sendall(bytes(60_000))
    assert len(accepted.recv(1 << 20, socket.MSG_PEEK)) == 60_000
    assert len(accepted.recv(1 << 20)) == 60_000


def busy() -> None:
    """A thread does not poll memory while the kernel has its bytes, or room for others."""
    client, accepted = cases.connected(cases.listener())
    idle, _other = cases.connected(cases.listener())
    client.setblocking(False)
    sent = 0
    while sent < 200_000:
        sent += client.send(bytes(10_000))
    # The ring's bytes, and one of the kernel's.
    assert len(cases.take(accepted, (64 << 10) + 1)) == (64 << 10) + 1

    def cost_s(reads: list, writes: list) -> float:
        before = time.process_time()
        for _ in range(5000):
            assert select.select(reads, writes, [], 5) == (
                reads[:1] if not writes else [],
                writes,
                [],
            )
        return time.process_time() - before

    reader, writer = os.pipe()
    os.write(writer, b"x")
    # Polling would add 30 us to each call.
    most_s = 0.08 + 4 * cost_s([reader], [])
    assert cost_s([accepted, idle], []) < most_s
    assert cost_s([idle], [writer]) < most_s


CASES = (changed, looks, overfull, whole, busy)

if __name__ == "__main__":
    {case.__name__: case for case in CASES}[sys.argv[1]]()
