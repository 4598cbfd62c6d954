"""Unmodified programs whose sockets are in a rack: cases.py CASE. A failed check ends it with 1."""

import errno
import hashlib
import os
import random
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import time

HOST = "127.0.0.1"


def listener() -> socket.socket:
    made = socket.socket()
    made.bind((HOST, 0))
    made.listen(64)
    return made


def connected(to: socket.socket) -> tuple[socket.socket, socket.socket]:
    client = socket.create_connection(to.getsockname())
    server, _ = to.accept()
    # Both directions go through memory after the first exchange.
    for one, other in ((client, server), (server, client), (client, server)):
        one.sendall(b"hello")
        assert take(other, 5) == b"hello"
    return client, server


def take(end: socket.socket, count: int) -> bytes:
    parts = []
    while count:
        part = end.recv(count)
        if not part:
            break
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def child(run) -> int:
    process = os.fork()
    if process == 0:
        code = 1
        try:
            run()
            code = 0
        finally:
            os._exit(code)
    return process


def ended(process: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def streams() -> None:
    """Threads send at random, blocking and not, by select and epoll; the digests must agree."""
    seed = random.randrange(1 << 30)
    print(f"seed {seed}", flush=True)
    server = listener()

    def send(end: socket.socket, number: int, digests: dict[int, str]) -> None:
        own = random.Random(seed + number)
        digest = hashlib.sha256()
        end.setblocking(number % 2 == 0)
        for _ in range(300):
            data = own.randbytes(own.choice([1, 100, 5000, 100_000]))
            digest.update(data)
            left = memoryview(data)
            while left:
                try:
                    left = left[end.send(left) :]
                except BlockingIOError:
                    select.select([], [end], [])
        digests[number] = digest.hexdigest()
        end.shutdown(socket.SHUT_WR)

    def receive(end: socket.socket, number: int, digests: dict[int, str]) -> None:
        own = random.Random(seed - number)
        digest = hashlib.sha256()
        end.setblocking(number % 3 == 0)
        edge = number % 4 == 1
        epoll = select.epoll()
        epoll.register(end, select.EPOLLIN | (select.EPOLLET if edge else 0))
        while True:
            try:
                data = end.recv(own.choice([1, 1000, 70_000]))
            except BlockingIOError:
                if number % 2:
                    assert epoll.poll(20), "a wake-up is lost"
                else:
                    assert select.select([end], [], [], 20)[0], "a wake-up is lost"
                continue
            if not data:
                break
            digest.update(data)
        epoll.close()
        digests[number] = digest.hexdigest()

    for numbers in ((0, 1, 2), (3, 4, 5), (6, 7, 9)):
        sent: dict[int, str] = {}
        got: dict[int, str] = {}
        threads = []
        pairs = []
        for number in numbers:
            pair = connected(server)
            pairs.append(pair)
            threads.append(threading.Thread(target=send, args=(pair[0], number, sent)))
            threads.append(threading.Thread(target=receive, args=(pair[1], number, got)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sent == got and len(sent) == len(numbers)
        for pair in pairs:
            pair[0].close()
            pair[1].close()


def fork() -> None:
    """A server's children serve the connections that it has accepted."""
    server = listener()

    def serve(end: socket.socket) -> None:
        server.close()
        while data := end.recv(1000):
            end.sendall(data.upper())

    client, accepted = connected(server)
    process = child(lambda: (client.close(), serve(accepted)))
    accepted.close()
    for _ in range(2000):
        client.sendall(b"abc")
        assert take(client, 3) == b"ABC"
    client.close()
    assert ended(process) == 0


def killed() -> None:
    """A peer that is killed ends the stream; what it had sent is received before."""
    server = listener()
    client, accepted = connected(server)

    def die() -> None:
        client.close()
        accepted.sendall(b"x" * 10_000)
        os.kill(os.getpid(), signal.SIGKILL)

    process = child(die)
    accepted.close()
    assert ended(process) == -signal.SIGKILL
    assert take(client, 20_000) == b"x" * 10_000
    begun = time.monotonic()
    try:
        while True:
            client.sendall(b"y" * 1000)
    except (BrokenPipeError, ConnectionResetError):
        pass
    assert time.monotonic() - begun < 5

    # One that is killed while this end waits for it.
    client, accepted = connected(server)
    process = child(lambda: (client.close(), time.sleep(60)))
    accepted.close()
    threading.Timer(0.2, os.kill, (process, signal.SIGKILL)).start()
    assert client.recv(1) == b""
    ended(process)


def plain() -> None:
    """The other end runs without the library: the kernel carries everything."""
    for is_server_plain in (True, False):
        code = (
            "import socket,sys\n"
            "s=socket.socket();s.bind(('127.0.0.1',0));s.listen()\n"
            "print(s.getsockname()[1],flush=True)\n"
            "c,_=s.accept()\n"
            "while d:=c.recv(1000): c.sendall(d)\n"
        )
        if not is_server_plain:
            code = (
                "import socket,sys\n"
                "c=socket.create_connection(('127.0.0.1',int(sys.argv[1])))\n"
                "while d:=c.recv(1000): c.sendall(d)\n"
            )
        server = listener()
        environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
        words = [sys.executable, "-c", code, str(server.getsockname()[1])]
        process = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE)
        if is_server_plain:
            assert process.stdout
            end = socket.create_connection((HOST, int(process.stdout.readline())))
        else:
            end, _ = server.accept()
        for size in (1, 1000, 50_000):
            data = os.urandom(size)
            thread = threading.Thread(target=end.sendall, args=(data,))
            thread.start()
            assert take(end, size) == data
            thread.join()
        end.shutdown(socket.SHUT_WR)
        assert end.recv(1) == b""
        assert process.wait() == 0


def ringless() -> None:
    """A program, and one that it starts, find no io_uring: its calls would pass by the library."""
    code = (
        "import ctypes, errno\n"
        "c = ctypes.CDLL(None, use_errno=True)\n"
        "assert (c.syscall(425, 8, None), ctypes.get_errno()) == (-1, errno.ENOSYS)\n"
    )
    exec(code, {})
    subprocess.run([sys.executable, "-c", code], check=True)


def executed() -> None:
    """A program that is executed goes on with the socket, by the kernel."""
    server = listener()
    client, accepted = connected(server)
    process = subprocess.Popen(["cat"], stdin=accepted, stdout=accepted)
    accepted.close()
    for size in (1, 30_000):
        data = os.urandom(size)
        client.sendall(data)
        assert take(client, size) == data
    client.shutdown(socket.SHUT_WR)
    assert client.recv(1) == b""
    assert process.wait() == 0


def passed() -> None:
    """A descriptor that is passed to another process goes on by the kernel."""
    server = listener()
    client, accepted = connected(server)
    one, other = socket.socketpair()
    process = child(lambda: (client.close(), accepted.close(), serve_passed(other)))
    socket.send_fds(one, [b"x"], [accepted.fileno()])
    accepted.close()
    for _ in range(100):
        client.sendall(b"abc")
        assert take(client, 3) == b"ABC"
    client.close()
    assert ended(process) == 0


def serve_passed(other: socket.socket) -> None:
    _, fds, _, _ = socket.recv_fds(other, 1, 1)
    end = socket.socket(fileno=fds[0])
    while data := end.recv(100):
        end.sendall(data.upper())


def waits() -> None:
    """Timeouts and signals end a wait as the kernel's."""
    client, accepted = connected(listener())
    limit = (200_000).to_bytes(8, "little")
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, bytes(8) + limit)
    begun = time.monotonic()
    try:
        os.read(client.fileno(), 1)
        raise AssertionError("nothing was sent")
    except BlockingIOError:
        assert 0.19 < time.monotonic() - begun < 2
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, bytes(16))

    for delay in (0.005, 0.2):
        interrupted_s(client, delay, 0.05)
    threading.Timer(0.1, accepted.sendall, (b"abc",)).start()
    assert client.recv(3, socket.MSG_WAITALL) == b"abc"
    threading.Timer(0.1, client.shutdown, (socket.SHUT_RDWR,)).start()
    assert client.recv(1) == b""


def interrupted_s(client: socket.socket, delay: float, again: float) -> float:
    """Wait for bytes until an alarm ends the wait; return how long it took.

    The first alarm may come before the call sleeps. It then ends no wait, as with a socket of the
    kernel; a later one does.
    """

    class Stop(Exception):
        pass

    is_over = False

    def stop(*_: object) -> None:
        nonlocal is_over
        signal.setitimer(signal.ITIMER_REAL, 0)
        # On a busy machine one more alarm may be under way.
        if not is_over:
            is_over = True
            raise Stop

    signal.signal(signal.SIGALRM, stop)
    begun = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, delay, again)
        client.recv(1)
        raise AssertionError("nothing was sent")
    except Stop:
        return time.monotonic() - begun


def alarms() -> None:
    """A signal ends a wait also between the library's looks at memory, the sleeps of 10 ms."""
    client, _accepted = connected(listener())
    late = 0
    for number in range(100):
        delay = 0.01 + number * 4e-6
        late += interrupted_s(client, delay, 0.08) > delay + 0.06
    # A busy machine may be late now and then; a call that looks away loses a third of them.
    assert late <= 5, late


def reset() -> None:
    """A reset is an error, not an end; what came before it is received first."""
    server = listener()

    def broken(way: str, unread: bytes) -> None:
        client, accepted = connected(server)
        accepted.sendall(unread)
        client.sendall(b"never read")

        def close() -> None:
            time.sleep(0.2 if way == "sleep" else 0)
            accepted.close()

        thread = threading.Thread(target=close)
        thread.start()
        if way != "sleep":
            thread.join()
        assert take(client, len(unread)) == unread
        if way == "poll":
            poller = select.poll()
            poller.register(client, select.POLLIN)
            assert poller.poll(5000)
        if way == "option":
            assert client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNRESET
        else:
            try:
                client.send(b"x") if way == "send" else client.recv(1)
                raise AssertionError(f"{way}: a reset is no end")
            except ConnectionResetError:
                pass
        assert client.recv(1) == b"", "the error is told once"
        thread.join()

    for way in ("at once", "sleep", "poll", "option", "send"):
        for unread in (b"", b"abc"):
            broken(way, unread)


def readers() -> None:
    """A thread that sleeps in poll or recv is woken, whatever another thread reads meanwhile."""
    client, accepted = connected(listener())
    woken = threading.Event()

    def sleep_in_poll() -> None:
        poller = select.poll()
        poller.register(client, select.POLLIN)
        while not woken.is_set():
            assert poller.poll(10_000), "a wake-up is lost"
            if client.recv(1, socket.MSG_PEEK) == b"!":
                woken.set()

    def sleep_in_recv() -> None:
        while not woken.is_set():
            if client.recv(1, socket.MSG_PEEK) == b"!":
                woken.set()

    for sleeper in (sleep_in_poll, sleep_in_recv):
        woken.clear()
        thread = threading.Thread(target=sleeper)
        thread.start()
        # Both threads find messages; the sleeper is in the kernel before most of them.
        for delay in (0.1, 0, 0, 0.05, 0):
            time.sleep(delay)
            accepted.sendall(b"abc")
            assert take(client, 3) == b"abc"
        time.sleep(0.1)
        accepted.sendall(b"!")
        assert woken.wait(5), f"{sleeper.__name__}: a wake-up is lost"
        thread.join()
        assert client.recv(1) == b"!"


def silently(client: socket.socket, accepted: socket.socket, text: bytes) -> None:
    """Send one byte and `text`; `client` takes the byte, and the text comes without a bell."""
    # The end polls memory when the first byte comes.
    reader = threading.Thread(target=client.recv, args=(1,))
    reader.start()
    time.sleep(0.005)
    accepted.sendall(b"a" + text)
    reader.join()


def watched() -> None:
    """Bytes that came before a socket entered a set wake the thread that sleeps in the set."""
    server = listener()
    for more in (0, select.EPOLLET, select.EPOLLONESHOT, select.EPOLLOUT):
        client, accepted = connected(server)
        with select.epoll() as epoll:
            found: list[tuple[int, int]] = []

            def sleep(epoll=epoll, found=found) -> None:
                found.extend(epoll.poll(5))

            silently(client, accepted, b"bc")
            thread = threading.Thread(target=sleep)
            thread.start()
            time.sleep(0.1)
            epoll.register(client, select.EPOLLIN | more)
            thread.join()
            events = select.EPOLLIN | (more & select.EPOLLOUT)
            assert found == [(client.fileno(), events)], (more, found)
            again = epoll.poll(0.05)
            assert again == ([] if more & (select.EPOLLET | select.EPOLLONESHOT) else found), again
            assert take(client, 2) == b"bc"
            assert epoll.poll(0) == ([(client.fileno(), more)] if more == select.EPOLLOUT else [])
            if more == select.EPOLLONESHOT:
                accepted.sendall(b"d")
                assert epoll.poll(0.05) == [], "the event was given once"
                epoll.modify(client, select.EPOLLIN | more)
            else:
                accepted.sendall(b"d")
            assert epoll.poll(5) == [(client.fileno(), events)]
            assert client.recv(9) == b"d"


def urgent() -> None:
    """An urgent byte of the other end does not keep a reader busy."""
    client, accepted = connected(listener())
    client.sendall(b"a")
    client.send(b"!", socket.MSG_OOB)
    client.sendall(b"b")
    time.sleep(0.1)
    assert take(accepted, 2) == b"ab"


def stopped() -> None:
    """A call that has sent a part returns it: it raises no signal, and a signal ends it."""
    raised: list[int] = []
    signal.signal(signal.SIGPIPE, lambda number, _: raised.append(number))
    client, accepted = connected(listener())
    data = bytes(30 << 20)
    threading.Timer(0.3, client.shutdown, (socket.SHUT_WR,)).start()
    sent = os.write(client.fileno(), data)
    time.sleep(0.1)
    assert 0 < sent < len(data) and not raised, (sent, raised)
    assert len(take(accepted, sent)) == sent

    class Stop(Exception):
        pass

    def stop(*_: object) -> None:
        raise Stop

    signal.signal(signal.SIGALRM, stop)
    # The call copies, and waits for the ring first, and then for the kernel's socket.
    for delay in (*(0.003 + number * 0.0005 for number in range(30)), 0.2):
        client, accepted = connected(listener())
        begun = time.monotonic()
        try:
            # No other thread is here that could take the signal; the second one ends a failure.
            signal.setitimer(signal.ITIMER_REAL, delay, 10)
            os.write(client.fileno(), data)
            time.sleep(1)
            raise AssertionError("the signal comes before the end of the call")
        except Stop:
            signal.setitimer(signal.ITIMER_REAL, 0)
        assert time.monotonic() - begun < 5, f"{delay} s: the signal ends the call"


def forks() -> None:
    """A child that was forked while another thread accepts can accept by itself."""
    busy, own = listener(), listener()

    def accept() -> None:
        while True:
            busy.accept()[0].close()

    def connect() -> None:
        while True:
            socket.create_connection(busy.getsockname()).close()

    for target in (accept, connect):
        threading.Thread(target=target, daemon=True).start()

    def serve() -> None:
        signal.alarm(5)
        end, _ = own.accept()
        assert take(end, 1) == b"?"
        end.sendall(b"!")
        end.close()

    for _ in range(200):
        process = child(serve)
        with socket.create_connection(own.getsockname()) as end:
            end.sendall(b"?")
            assert take(end, 1) == b"!"
        assert ended(process) == 0


def behind() -> None:
    """A sender that has filled the socket before its reader begins, and that stays the faster."""
    server = listener()
    message, count = b"m" * 4096, 4000

    def send() -> None:
        with socket.create_connection(server.getsockname()) as client:
            for _ in range(count):
                client.sendall(message)

    sender = threading.Thread(target=send)
    sender.start()
    time.sleep(0.2)
    end, _ = server.accept()
    got = 0
    while part := end.recv(4096):
        for _ in range(20):
            hashlib.sha256(part)
        got += len(part)
    sender.join()
    assert got == len(message) * count, got


def many() -> None:
    """Ten thousand connections, some at a time, leave no descriptor and no mapping."""

    def held() -> tuple[int, int]:
        with open("/proc/self/maps") as maps:
            return len(os.listdir("/proc/self/fd")), sum(1 for _ in maps)

    server = listener()
    first = connected(server)
    first[0].close()
    first[1].close()
    before = held()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 1024), hard))
    for _ in range(100):
        pairs = [connected(server) for _ in range(100)]
        for client, accepted in pairs:
            client.sendall(b"end")
            client.close()
            assert take(accepted, 9) == b"end"
            accepted.close()
    now = held()
    # The interpreter itself maps memory now and then; a connection would map it 20,000 times.
    assert now[0] == before[0] and now[1] < before[1] + 100, (before, now)


CASES = (
    *(streams, fork, killed, plain, ringless, executed, passed, waits, alarms, many),
    *(reset, readers, watched, urgent, stopped, forks, behind),
)

if __name__ == "__main__":
    {case.__name__: case for case in CASES}[sys.argv[1]]()
