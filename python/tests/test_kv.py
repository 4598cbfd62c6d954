"""The key-value store from Python, on every kind of pool and with either side walking its index."""

import threading
from typing import Literal

import pytest

import ethermem
from ethermem import Pool, kv

POOLS = ["local:", "sim:edm?nodes=6", "sim:tcp?nodes=6"]
INDEXES: list[Literal["node", "client"]] = ["node", "client"]


@pytest.fixture(params=POOLS)
def pool(request):
    with Pool.open(request.param) as opened:
        yield opened


@pytest.mark.parametrize("index", INDEXES)
def test_every_operation_says_what_it_found(pool, index):
    client = kv.Store.create(pool).wait().client(index)
    assert client.read(b"key").wait() is None
    assert client.update(b"key", b"too early").wait() is False
    assert client.create(b"key", b"value").wait() is True
    assert client.create(b"key", b"again").wait() is False
    assert client.read(b"key").wait() == b"value"
    assert client.update(b"key", bytearray(b"\0\1\2")).wait() is True
    assert client.read(bytearray(b"key")).wait() == b"\0\1\2"
    assert client.put(b"other", b"").wait() is None
    assert client.read(b"other").wait() == b""
    assert client.delete(b"key").wait() is True
    assert client.delete(b"key").wait() is False
    assert client.read(b"key").wait() is None
    assert client.clear().wait() is None
    assert client.read(b"other").wait() is None


@pytest.mark.parametrize("index", INDEXES)
def test_a_value_goes_to_a_buffer_of_the_program(pool, index):
    client = kv.Store.create(pool).wait().client(index)
    buffer = bytearray(b"\xee" * 100_000)
    assert client.read_into(b"key", buffer) is None
    for value in [b"", b"short", bytes(range(250)) * 280]:
        client.put(b"key", value).wait()
        assert client.read_into(bytearray(b"key"), buffer) == len(value)
        assert buffer == value + b"\xee" * (100_000 - len(value))
        buffer[:] = b"\xee" * 100_000
    with pytest.raises(ethermem.LengthError, match="a buffer of 69999 B: must be at least 70000"):
        client.read_into(b"key", bytearray(69_999))
    with pytest.raises(ethermem.InputError, match="cannot be written: must be writable"):
        client.read_into(b"key", bytes(100_000))
    pending = client.read(b"key")
    if pending.poll():
        pending.wait()
    else:
        with pytest.raises(RuntimeError, match="one operation at a time"):
            client.read_into(b"key", buffer)
        pending.wait()
    assert client.read_into(b"key", memoryview(buffer)[10:]) == 70_000


def test_both_walks_see_one_store(pool):
    store = kv.Store.create(pool, memory_nodes=1, buckets=2, hash_seed=7).wait()
    clients = {index: store.client(index, 0) for index in INDEXES}
    # The store's tables grow meanwhile.
    for number in range(200):
        key = str(number).encode()
        clients[INDEXES[number % 2]].put(key, key * number).wait()
    for number in range(200):
        key = str(number).encode()
        assert clients[INDEXES[(number + 1) % 2]].read(key).wait() == key * number


def test_the_node_takes_one_round_trip_and_a_client_several():
    def read_ps(index):
        pool = Pool.open("sim:edm?nodes=2")
        client = kv.Store.create(pool).wait().client(index)
        client.put(b"key", b"value").wait()
        began_ps = pool.now_ps()
        assert client.read(b"key").wait() == b"value"
        return pool.now_ps() - began_ps

    assert read_ps("node") < read_ps("client")


@pytest.mark.parametrize("index", INDEXES)
def test_a_counter_by_many_clients_is_of_one_of_them(pool, index):
    store = kv.Store.create(pool).wait()

    async def claim(number):
        client = store.client(index)
        return [await client.create(f"{key}".encode(), bytes([number])) for key in range(20)]

    tasks = pool.tasks()
    for number in range(4):
        tasks.spawn(claim(number))
    won = tasks.run()
    # Each key was created by exactly one client.
    assert [sum(of_key) for of_key in zip(*won, strict=True)] == [1] * 20


def test_a_client_does_one_thing_at_a_time():
    pool = Pool.open("sim:edm?nodes=2")
    client = kv.Store.create(pool).wait().client()
    first = client.put(b"key", b"one")
    with pytest.raises(RuntimeError, match="a client does one operation at a time"):
        client.put(b"key", b"two")
    first.wait()
    # A client whose operation was forgotten is usable, and its next operation finds the outcome.
    forgotten = client.put(b"key", b"three")
    del forgotten
    assert client.read(b"key").wait() in (b"one", b"three")
    assert client.put(b"key", b"four").wait() is None
    assert client.read(b"key").wait() == b"four"


def test_threads_of_python_share_a_store():
    store = kv.Store.create(Pool.open("local:")).wait()

    def fill(number):
        client = store.client(INDEXES[number % 2])
        for key in range(200):
            client.put(f"{number}:{key}".encode(), bytes([number])).wait()

    threads = [threading.Thread(target=fill, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reader = store.client()
    for number in range(4):
        for key in range(200):
            assert reader.read(f"{number}:{key}".encode()).wait() == bytes([number])


def test_what_cannot_be_is_said():
    pool = Pool.open("local:?memory_bytes=1000000")
    for wrong in [{"buckets": 3}, {"memory_nodes": 2}, {"memory_nodes": 0}]:
        with pytest.raises(ethermem.InputError, match="must be"):
            kv.Store.create(pool, **wrong).wait()
    store = kv.Store.create(pool).wait()
    with pytest.raises(ethermem.InputError, match="index = 'both': must be one of node, client"):
        store.client("both")  # type: ignore[arg-type]
    with pytest.raises(ethermem.NodeError):
        store.client("node", 5)
    client = store.client()
    with pytest.raises(ethermem.LengthError, match="a key of 8193 B: must be 0 to 8192"):
        client.put(bytes(8193), b"").wait()
    with pytest.raises(ethermem.InputError, match="a buffer with gaps"):
        client.put(b"key", memoryview(bytes(8))[::2])
    with pytest.raises(ethermem.FullError) as raised:
        for number in range(100):
            client.put(bytes([number]), bytes(50_000)).wait()
    assert raised.value.retryable
    assert client.read(b"\0").wait() == bytes(50_000)
