"""Remote memory from Python: the effect of each call, and what threads may see of each other."""

import subprocess
import sys
import threading

import numpy
import pytest

import ethermem
from ethermem import Permissions, Pool

POOLS = ["local:", "sim:edm?nodes=6", "sim:tcp?nodes=6"]


@pytest.fixture(params=POOLS)
def pool(request):
    with Pool.open(request.param) as opened:
        yield opened


def test_bytes_go_there_and_back(pool):
    region = pool.thread().alloc(4096).wait()
    assert region.read(0, 4).wait() == bytes(4)
    region.write(100, b"remote").wait()
    assert region.read(100, 6).wait() == b"remote"
    one, early, two = region.write(0, b"one"), region.read(0, 3), region.write(0, b"two")
    assert region.read(0, 3).wait() == b"two"
    assert (one.wait(), early.wait(), two.wait()) == (None, b"one", None)
    with pytest.raises(RuntimeError, match="given once"):
        two.wait()


def test_arrays_go_there_and_back(pool):
    region = pool.thread().alloc(1 << 16).wait()
    sent = numpy.arange(1000, dtype=numpy.float64).reshape(10, 100)
    region.write(64, sent).wait()
    found = numpy.zeros_like(sent)
    region.read_into(64, found)
    assert (found == sent).all()
    part = bytearray(8)
    region.read_into(64 + 8, memoryview(part))
    assert part == sent[0, 1].tobytes()
    # The buffer of a write may be changed at once.
    pending = region.write(64, sent)
    sent[:] = 0
    pending.wait()
    region.read_into(64, sent)
    assert (found == sent).all()
    region.write_from(32, sent[0] * 2)
    region.read_into(32, found)
    assert (found[0] == sent[0] * 2).all()


@pytest.mark.parametrize(
    ("buffer", "line"),
    [
        (numpy.zeros((4, 4))[:, 1], "a buffer with gaps"),
        (numpy.zeros((4, 4), order="F"), "a buffer with gaps"),
        (b"cannot be written", "a buffer that cannot be written"),
    ],
)
def test_a_buffer_that_cannot_be_filled_is_refused(buffer, line):
    region = Pool.open("local:").thread().alloc(4096).wait()
    with pytest.raises(ethermem.InputError, match=line):
        region.read_into(0, buffer)


def test_threads_have_what_regions_have(pool):
    thread = pool.thread()
    region = thread.alloc(4096).wait()
    assert region.thread.process == thread.process
    sent, found = numpy.arange(6, dtype="u1"), numpy.zeros(5, "u1")
    thread.write_from(region.at(8), sent)
    thread.read_into(region.at(9), found)
    assert (found == sent[1:]).all()
    places = [(region.at(12), 2), (region.at(8), 3)]
    thread.gather_into(places, found)
    assert found.tolist() == [4, 5, 0, 1, 2]
    with pytest.raises(ethermem.InputError, match="a buffer of 6 B: must be 5, as the places"):
        thread.gather_into(places, sent)
    with pytest.raises(ethermem.UnmappedError):
        thread.gather_into([places[0], (0, 3)], found)
    assert found.tolist() == [4, 5, 0, 1, 2]
    with pytest.raises(ethermem.InputError, match="cannot be written"):
        thread.gather_into([places[0]], b"ab")


def test_every_atomic_of_one_operand(pool):
    thread = pool.thread()
    at = thread.alloc(8).wait().address
    story = [("or", 12, 0), ("and", 6, 12), ("xor", 7, 4), ("add", 1, 3), ("swap", 9, 4)]
    for operation, operand, before in story:
        assert thread.modify(at, operation, operand).wait() == before
    assert thread.fetch_add(at, 0).wait() == 9
    with pytest.raises(ethermem.InputError, match="operation = 'nand': must be one of add, swap"):
        thread.modify(at, "nand", 1)


def test_a_step_lets_the_pool_go_on(pool):
    thread = pool.thread()
    assert pool.is_simulated == pool.url.startswith("sim:")
    assert not pool.step()
    sleeping, steps = thread.sleep(1_000_000), 0
    while not sleeping.poll():
        assert pool.step()
        steps += 1
    assert steps <= 2 or not pool.is_simulated
    assert not pool.step()
    assert thread.now_ps() >= 1_000_000
    thread.alloc(8).wait()
    assert (pool.events > 0) == pool.is_simulated


def test_atomics_and_places(pool):
    thread = pool.thread()
    region = thread.alloc(4096).wait()
    word = region.address
    assert thread.fetch_add(word, 5).wait() == 0
    assert thread.compare_and_swap(word, 4, 9).wait() == 5
    assert thread.swap(word, 2).wait() == 5
    assert thread.test_and_set(word).wait() is False
    assert thread.test_and_set(word).wait() is True
    thread.scatter([(region.at(8), b"abc"), (region.at(64), numpy.array([1, 2], "u1"))]).wait()
    assert thread.gather([(region.at(64), 2), (region.at(8), 3)]).wait() == b"\1\2abc"
    thread.release().wait()
    thread.fence().wait()


def test_a_chain_is_followed_at_the_memory_node(pool):
    thread = pool.thread()
    chain = thread.alloc(48).wait()
    words = numpy.array([chain.at(24), 1, 10, 0, 2, 20], dtype="<u8")
    chain.write(0, words).wait()
    at = {"next_offset": 0, "key_offset": 8, "value_offset": 16, "value_bytes": 8}
    key = numpy.uint64(2).tobytes()
    value = (20).to_bytes(8, "little")
    assert thread.chase(chain.address, key, **at).wait() == (chain.at(24), value)
    assert thread.chase(chain.address, bytes(8), **at).wait() is None
    # Records of the same elements, by the first word: an address, or 0 in the last.
    records = {"record_bytes": 24, "records": 2, "operand": 0}
    last = chain.read(24, 24).wait()
    found = thread.filter(chain.address, comparison="equal", **records).wait()
    assert found == last
    by_key = {"field_offset": 8, **records, "operand": 1}
    assert thread.filter(chain.address, comparison="greater", **by_key).wait() == last
    assert thread.filter(chain.address, comparison="less", **by_key).wait() == b""
    with pytest.raises(ethermem.InputError, match="comparison = 'over': must be one of less"):
        thread.filter(chain.address, comparison="over", **records)
    with pytest.raises(ethermem.OffloadError):
        thread.filter(chain.address, comparison="less", **(records | {"field_offset": 17})).wait()
    with pytest.raises(ethermem.OffloadError, match="must be one of chase, filter"):
        thread.offload("chas", chain.address, b"").wait()


def test_sharing_and_freeing(pool):
    thread, stranger = pool.thread(), pool.thread()
    with thread.alloc(4096, Permissions.READ_WRITE).wait() as region:
        seen = region.by(stranger)
        with pytest.raises(ethermem.UnmappedError):
            seen.read(0, 1).wait()
        region.share(stranger.process, Permissions.READ).wait()
        assert seen.read(0, 1).wait() == b"\0"
        with pytest.raises(ethermem.AccessError, match="no permission to write at 0x"):
            seen.write(0, b"no").wait()
    with pytest.raises(ethermem.UnmappedError):
        region.read(0, 1).wait()


def test_every_error_has_its_class(pool):
    thread = pool.thread()
    region = thread.alloc(4096).wait()
    for error, call in [
        (ethermem.LengthError, lambda: region.read(0, 0).wait()),
        (ethermem.LengthError, lambda: region.write(0, b"").wait()),
        (ethermem.LengthError, lambda: thread.alloc(1 << 60).wait()),
        (ethermem.UnmappedError, lambda: region.read(4090, 8).wait()),
        (ethermem.MisalignedError, lambda: thread.fetch_add(region.at(4), 1).wait()),
        (ethermem.NotHeldError, lambda: thread.unlock(region.address).wait()),
        (ethermem.NodeError, lambda: thread.fork(500)),
        (ethermem.NodeError, lambda: thread.alloc(8, memory_node=500).wait()),
        (ethermem.InputError, lambda: thread.alloc(8, 7)),
    ]:
        with pytest.raises(error) as raised:
            call()
        assert isinstance(raised.value, ethermem.EthermemError)
        assert "\n" not in str(raised.value)
    full = Pool.open("local:?memory_bytes=100").thread().alloc(101)
    with pytest.raises(ethermem.FullError) as raised:
        full.wait()
    assert raised.value.retryable
    assert not ethermem.UnmappedError.retryable


@pytest.mark.parametrize("url", ["smi:edm", "sim:emd", "local:?memory=1", "edm"])
def test_a_url_that_is_wrong_says_what_is_allowed(url):
    with pytest.raises(ethermem.InputError, match="must be"):
        Pool.open(url)


def test_asking_alone_gets_there(pool):
    sleeping = pool.thread().sleep(3_000_000)
    before_ps = pool.now_ps()
    while not sleeping.poll():
        pass
    assert sleeping.wait() is None
    assert pool.now_ps() >= before_ps


def word(found):
    return int.from_bytes(found, "little")


def test_a_flag_behind_a_release_is_seen_after_the_data(pool):
    owner = pool.thread()
    data, flag = (owner.alloc(8).wait() for _ in range(2))
    writer, reader = owner.fork(0), owner.fork()

    async def write():
        data.by(writer).write(0, b"\1")
        await writer.release()
        await flag.by(writer).write(0, b"\1")

    async def read():
        while await flag.by(reader).read(0, 1) == b"\0":
            await reader.sleep(50_000)
        return await data.by(reader).read(0, 1)

    tasks = pool.tasks()
    tasks.spawn(write())
    tasks.spawn(read())
    assert tasks.run() == [None, b"\1"]


@pytest.mark.parametrize("skew", range(4))
def test_with_fences_not_both_miss_the_others_write(pool, skew):
    owner = pool.thread()
    mine, others = (owner.alloc(8).wait() for _ in range(2))

    async def side(mine, others, delay_ps):
        thread = owner.fork()
        await thread.sleep(delay_ps)
        mine.by(thread).write(0, b"\1")
        await thread.fence()
        return await others.by(thread).read(0, 1)

    tasks = pool.tasks()
    tasks.spawn(side(mine, others, 0))
    tasks.spawn(side(others, mine, skew * 80_000))
    assert tasks.run() != [b"\0", b"\0"]


def test_a_counter_under_a_lock_loses_nothing(pool):
    owner = pool.thread()
    lock, counter = (owner.alloc(8).wait() for _ in range(2))

    async def client(node):
        thread = owner.fork(node % pool.nodes[0])
        for _ in range(20):
            await thread.lock(lock.address)
            count = word(await counter.by(thread).read(0, 8))
            counter.by(thread).write(0, (count + 1).to_bytes(8, "little"))
            await thread.unlock(lock.address)

    tasks = pool.tasks()
    for node in range(4):
        tasks.spawn(client(node))
    tasks.run()
    assert word(counter.read(0, 8).wait()) == 80


def test_a_counter_under_a_lock_loses_nothing_between_threads_of_python():
    """A waiting thread releases the interpreter's lock: otherwise no thread could unlock."""
    owner = Pool.open("local:").thread()
    lock, counter = (owner.alloc(8).wait() for _ in range(2))

    def client(thread):
        for _ in range(300):
            thread.lock(lock.address).wait()
            count = word(counter.by(thread).read(0, 8).wait())
            counter.by(thread).write(0, (count + 1).to_bytes(8, "little")).wait()
            thread.unlock(lock.address).wait()

    threads = [threading.Thread(target=client, args=(owner.fork(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert word(counter.read(0, 8).wait()) == 1200


def test_a_simulated_run_repeats_to_the_picosecond():
    def story():
        pool = Pool.open("sim:edm?nodes=8&load=0.3&seed=7")
        owner = pool.thread()
        address = owner.alloc(8).wait().address

        async def client(node):
            thread = owner.fork(node)
            return [(await thread.fetch_add(address, 1), pool.now_ps()) for _ in range(5)]

        tasks = pool.tasks()
        for node in range(4):
            tasks.spawn(client(node))
        return tasks.run()

    assert story() == story()


def test_the_first_error_ends_the_tasks(pool):
    thread = pool.thread()
    region = thread.alloc(8).wait()
    ended = []

    async def fails():
        await region.read(4, 8)

    async def goes_on():
        try:
            while True:
                await thread.sleep(10_000_000)
        finally:
            ended.append(True)

    tasks = pool.tasks()
    tasks.spawn(goes_on())
    tasks.spawn(fails())
    with pytest.raises(ethermem.UnmappedError):
        tasks.run()
    assert ended == [True]

    async def catches():
        try:
            await region.read(4, 8)
        except ethermem.UnmappedError:
            return "caught"

    assert pool.run(catches()) == "caught"


def test_what_is_of_no_pool_or_another_is_not_awaited(pool):
    other = Pool.open("local:").thread().sleep(10**9)

    async def strays():
        await other

    with pytest.raises(RuntimeError, match="of another pool"):
        pool.run(strays())


def test_hello_says_hello(root):
    hello = [sys.executable, str(root / "examples" / "hello.py")]
    said = subprocess.run([*hello, "sim:edm?nodes=2"], capture_output=True, text=True, check=True)
    assert said.stdout in (root / "docs" / "examples.md").read_text()
    wrong = subprocess.run([*hello, "sim:emd"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("hello: fabric `emd`: must be")
