"""Machine threads that share a pool: no result is lost, whichever thread completes an operation."""

import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ethermem import Pool, kv

OPERATIONS = int(os.environ.get("ETHERMEM_THREAD_OPERATIONS", "2000"))
WORDS = 64


def served(command, *where):
    """Start a memory node, and return it with its address, or the reason why it did not start."""
    words = [command, "node", "--memory", "64MiB", "--page", "4KiB", "--insecure", *where]
    serving = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return serving, serving.stdout.readline().strip().removeprefix("listening on ")


def ended(serving):
    serving.kill()
    serving.wait()
    serving.stdout.close()


@pytest.fixture(scope="module")
def udp(command):
    serving, address = served(command, "--listen", "127.0.0.1:0")
    # The longest timeout that may be given, because the machine is busy.
    yield f"udp://{address}?timeout_ms=4500"
    ended(serving)


@pytest.fixture(scope="module")
def ring(command):
    place = f"lo:{10_000 + os.getpid() % 50_000}"
    serving, found = served(command, "--ring", place)
    yield f"ring://{place}?timeout_ms=4500" if found else None
    ended(serving)


@pytest.fixture(params=["local:", "sim:edm?nodes=4", "sim:homa?nodes=4", "udp", "ring"])
def url(request):
    if ":" in request.param:
        return request.param
    found = request.getfixturevalue(request.param)
    return found or pytest.skip("a ring needs CAP_NET_RAW")


class Worker:
    """The work of one thread, and its expected words."""

    def __init__(self, pool, owner, shared, store, number):
        self.pool, self.thread, self.shared, self.number = pool, owner.fork(), shared, number
        self.own = self.thread.alloc(WORDS * 8).wait()
        self.client = store.client("client")
        self.model = [bytes(8)] * WORDS
        self.draws = random.Random(number)
        self.added = self.locked = 0

    def run(self, operations):
        done = 0
        while done < operations:
            at, value = self.draws.randrange(WORDS), self.draws.randbytes(8)
            done += self.draws.choice(ACTIONS)(self, at, value)
        return done

    def write(self, at, value):
        self.own.write(at * 8, value).wait()
        self.model[at] = value
        return 1

    def read(self, at, _):
        assert self.own.read(at * 8, 8).wait() == self.model[at]
        return 1

    def poll(self, at, value):
        writing, reading = self.own.write(at * 8, value), self.own.read(at * 8, 8)
        while not reading.poll():
            pass
        assert (reading.wait(), writing.wait()) == (value, None)
        self.model[at] = value
        return 2

    def add(self, *_):
        self.thread.fetch_add(self.shared, 1).wait()
        self.added += 1
        return 1

    def under_the_lock(self, *_):
        self.thread.lock(self.shared + 8).wait()
        count = int.from_bytes(self.thread.read(self.shared + 16, 8).wait(), "little") + 1
        self.thread.write(self.shared + 16, count.to_bytes(8, "little")).wait()
        self.thread.unlock(self.shared + 8).wait()
        self.locked += 1
        return 5

    def coroutine(self, at, value):
        async def several():
            writing = self.own.write(at * 8, value)
            await self.thread.release()
            await writing
            return await self.own.read(at * 8, 8)

        assert self.pool.run(several()) == value
        self.model[at] = value
        return 3

    def put(self, _, value):
        key = self.number.to_bytes(8, "little")
        self.client.put(key, value).wait()
        assert self.client.read(key).wait() == value
        return 2

    def fence(self, *_):
        self.thread.fence().wait()
        return 1


ACTIONS = [
    *[Worker.write, Worker.read] * 3,
    Worker.poll,
    Worker.add,
    Worker.under_the_lock,
    Worker.coroutine,
    Worker.put,
    Worker.fence,
]


@pytest.mark.parametrize("threads", [1, 2, 4, 16])
def test_nothing_is_lost_between_threads(url, threads):
    pool = Pool.open(url)
    owner = pool.thread()
    region = owner.alloc(64).wait()
    store = kv.Store.create(pool).wait()
    workers = [Worker(pool, owner, region.address, store, number) for number in range(threads)]
    began = time.monotonic()
    # If one of them failed, its error is raised here.
    with ThreadPoolExecutor(threads) as running:
        done = sum(running.map(lambda worker: worker.run(OPERATIONS // threads), workers))
    seconds = time.monotonic() - began
    print(f"storm: {url} threads {threads} operations {done} seconds {seconds:.1f}")
    counted = [int.from_bytes(region.read(at, 8).wait(), "little") for at in (0, 16)]
    assert counted == [sum(w.added for w in workers), sum(w.locked for w in workers)]
    pool.close()


WAITS_FOR_EVER = """
import sys
from ethermem import Pool, kv

pool = Pool.open(sys.argv[1])
thread = pool.thread()
region = thread.alloc(64).wait()
thread.lock(region.address).wait()
print("held", flush=True)
if sys.argv[2] == "wait":
    thread.fork().lock(region.address).wait()
else:
    async def lock():
        await thread.fork().lock(region.address)

    pool.run(lock())
"""


@pytest.mark.parametrize("way", ["wait", "run"])
def test_a_signal_ends_a_wait(url, way):
    words = [sys.executable, "-c", WAITS_FOR_EVER, url, way]
    waiting = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert waiting.stdout.readline() == "held\n"
    # The thread waits, or is about to: a signal before that is noticed, too.
    time.sleep(0.2)
    waiting.send_signal(signal.SIGINT)
    _, said = waiting.communicate(timeout=60)
    assert "KeyboardInterrupt" in said
