"""NumPy arrays used in place, in both directions, and arrays that cannot be."""

import ctypes
import subprocess
import sys

import numpy
import pytest

import ethermem
from ethermem import Pool

BYTES = 4096


@pytest.fixture(params=["local:", "sim:edm?nodes=2"])
def region(request):
    with Pool.open(request.param) as pool:
        yield pool.thread().alloc(BYTES).wait()


def writers(region):
    """Every call that takes a buffer to write, by name."""
    thread, at = region.thread, region.address
    return {
        "Region.write": lambda data: region.write(0, data).wait(),
        "Region.write_from": lambda data: region.write_from(0, data),
        "Thread.write": lambda data: thread.write(at, data).wait(),
        "Thread.write_from": lambda data: thread.write_from(at, data),
        "Thread.scatter": lambda data: thread.scatter([(at, data)]).wait(),
    }


def readers(region):
    """Every call that fills a buffer, by name."""
    thread, at = region.thread, region.address
    return {
        "Region.read_into": lambda buffer: region.read_into(0, buffer),
        "Thread.read_into": lambda buffer: thread.read_into(at, buffer),
        "Thread.gather_into": lambda buffer: thread.gather_into(
            [(at, memoryview(buffer).nbytes)], buffer
        ),
    }


def test_what_is_read_is_at_the_arrays_own_address(region):
    sent = numpy.arange(512, dtype="<u8")
    region.write(0, sent).wait()
    for name, read in readers(region).items():
        array = numpy.zeros(512, dtype="<u8")
        address, view = array.ctypes.data, array[100:104]
        read(array)
        assert array.ctypes.data == address, name
        assert ctypes.string_at(address, BYTES) == sent.tobytes(), name
        # Views of the same memory change too, and a part of an array can be filled alone.
        assert view.tolist() == [100, 101, 102, 103], name
        array[:] = 7
        read(view)
        assert array[99:105].tolist() == [7, 0, 1, 2, 3, 7], name


def test_what_is_written_is_what_stands_at_the_arrays_address(region):
    for name, write in writers(region).items():
        array = numpy.zeros(64, dtype="u1")
        ctypes.memset(array.ctypes.data, 0x5A, 64)
        write(array)
        assert region.read(0, 65).wait() == bytes([0x5A] * 64 + [0]), name
        region.write(0, bytes(64)).wait()


NO_COPY = """
import resource
import numpy
from ethermem import Pool

BYTES = 64 << 20

def grown_bytes(call):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    call()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024

pool = Pool.open("local:")
region = pool.thread().alloc(BYTES).wait()
array = numpy.ones(BYTES, "u1")
region.write_from(0, array)
region.read_into(0, array)
thread, at = region.thread, region.address
for call in [
    lambda: region.read_into(0, array),
    lambda: thread.read_into(at, array),
    lambda: region.write_from(0, array),
    lambda: thread.write_from(at, array),
]:
    print(grown_bytes(call) < BYTES // 4)
# That a copy would be seen.
print(grown_bytes(lambda: region.read(0, BYTES).wait()) >= BYTES // 2)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss is KiB on Linux")
def test_no_call_that_waits_copies_an_array():
    ran = [sys.executable, "-c", NO_COPY]
    said = subprocess.run(ran, capture_output=True, text=True, check=True).stdout
    assert said.split() == ["True"] * 5


GAPS = {
    "a column": lambda: numpy.zeros((8, 8))[:, 1],
    "every other": lambda: numpy.zeros(16)[::2],
    "backwards": lambda: numpy.zeros(16)[::-1],
    "in Fortran's order": lambda: numpy.zeros((8, 8), order="F"),
    "transposed": lambda: numpy.zeros((4, 8)).T,
    "the same again and again": lambda: numpy.broadcast_to(numpy.zeros(1), (8,)),
    "of memoryview": lambda: memoryview(bytearray(16))[::2],
}


@pytest.mark.parametrize("make", GAPS.values(), ids=GAPS.keys())
def test_an_array_with_gaps_is_refused_and_nothing_is_done(region, make):
    region.write(0, b"as it was").wait()
    for name, call in (writers(region) | readers(region)).items():
        array = make()
        before = array.tobytes()
        with pytest.raises(ethermem.InputError) as raised:
            call(array)
        line = "a buffer with gaps or in another order: must be C-contiguous"
        assert str(raised.value) == line, name
        assert array.tobytes() == before, name
    assert region.read(0, 9).wait() == b"as it was"
    # A copy of it works as well.
    region.write(0, numpy.ascontiguousarray(make())).wait()


def test_an_array_that_cannot_be_written_is_read_and_never_filled(region):
    array = numpy.arange(8, dtype="u1")
    array.flags.writeable = False
    for name, write in writers(region).items():
        write(array)
        assert region.read(0, 8).wait() == bytes(range(8)), name
        region.write(0, bytes(8)).wait()
    for name, read in readers(region).items():
        with pytest.raises(ethermem.InputError) as raised:
            read(array)
        line = "a buffer that cannot be written: must be writable"
        assert str(raised.value) == line, name
    assert array.tolist() == list(range(8))


OBJECTS = {
    "objects": lambda: numpy.array([None] * 8, dtype=object),
    "a field of objects": lambda: numpy.zeros(2, dtype=[("number", "<u8"), ("any", object)]),
}


@pytest.mark.parametrize("make", OBJECTS.values(), ids=OBJECTS.keys())
def test_pointers_of_the_interpreter_stay_in_it(region, make):
    for name, call in (writers(region) | readers(region)).items():
        with pytest.raises(ethermem.InputError, match="a buffer of Python's objects") as raised:
            call(make())
        assert "\n" not in str(raised.value), name


def test_arrays_of_any_numbers_are_their_bytes(region):
    record = numpy.dtype([("Offset", ">u4"), ("O", "<f8"), ("s", "S3")])
    for array in [
        numpy.array([(1, 2.5, b"abc")], dtype=record),
        numpy.array([3.5]),
        numpy.arange(24, dtype=">i2").reshape(2, 3, 4),
        numpy.array([True, False]),
        numpy.array([1 + 2j], dtype="c16"),
    ]:
        for write in writers(region).values():
            write(array)
            for read in readers(region).values():
                found = numpy.zeros_like(array)
                read(found)
                assert found.tobytes() == array.tobytes()
            region.write(0, bytes(BYTES)).wait()


@pytest.mark.parametrize("scalar", [numpy.array(3.5), numpy.float64(3.5)], ids=["array", "scalar"])
def test_one_value_alone_is_refused(region, scalar):
    for name, call in (writers(region) | readers(region)).items():
        with pytest.raises(ethermem.InputError, match="a buffer of one value alone") as raised:
            call(scalar)
        assert "\n" not in str(raised.value), name


def test_an_array_of_nothing_is_refused(region):
    for name, call in (writers(region) | readers(region)).items():
        with pytest.raises(ethermem.LengthError) as raised:
            call(numpy.zeros(0))
        assert str(raised.value).startswith("0 B: must be 1 to"), name


def test_what_is_no_buffer_is_a_type_error(region):
    for call in writers(region).values():
        with pytest.raises(TypeError):
            call(17)
