"""What the gets of bench_mooncake.py have in common, on a store that is a dictionary."""

import subprocess
import sys
import unittest
from pathlib import Path

import mooncake_peer
from mooncake_peer import Form, Gets, Objects, WrongBytesError

OBJECTS = Objects(64, 16)


class Store(Gets):
    """A store in memory, whose gets can be wrong."""

    def __init__(self, wrong=()):
        super().__init__()
        self.wrong = wrong

    def contents(self, index):
        """Return an object, or what the store has in its place."""
        return bytes(OBJECTS.size) if index in self.wrong else OBJECTS.contents(index)

    def made(self, name, objects, rows):
        """Return a form that returns bytes, or one that fills a buffer, unless it is lazy."""
        if name == "get":
            return Form(lambda order: (order[0],), self.contents, None)
        buffer = memoryview(bytearray(objects.size * rows))

        def fill(order):
            for row, index in enumerate(order):
                if index not in self.wrong:
                    start = row * objects.size
                    buffer[start : start + objects.size] = OBJECTS.contents(index)

        return Form(lambda order: (order,), fill, buffer)


class Measured(unittest.TestCase):
    def test_each_get_has_its_time(self):
        for form, rows in (("get", 1), ("into", 1), ("into", 4)):
            store = Store()
            store.check(form, OBJECTS, rows, 8, 0)
            taken = store.measure(form, OBJECTS, rows, 50, 1)
            self.assertEqual(len(taken), 50)
            self.assertGreater(min(taken), 0)

    def test_wrong_bytes_are_found(self):
        store = Store(wrong=range(16))
        for run in (store.check, store.measure):
            with self.assertRaisesRegex(WrongBytesError, "get of 64 B: other bytes"):
                run("get", OBJECTS, 1, 1, 1)

    def test_a_buffer_that_is_left_as_it_was_is_found(self):
        # Every object is in the buffer once, except for one that is never written.
        store = Store(wrong=[5])
        with self.assertRaisesRegex(WrongBytesError, "into of 64 B"):
            store.measure("into", OBJECTS, 1, 200, 1)

    def test_one_get_has_an_object_once(self):
        for order in OBJECTS.orders(100, 8, 1):
            self.assertEqual(len(set(order)), 8)

    def test_contents_differ(self):
        contents = {OBJECTS.contents(index) for index in range(OBJECTS.count)}
        self.assertEqual(len(contents), OBJECTS.count)


class Client(unittest.TestCase):
    def test_without_mooncake_it_is_one_line(self):
        script = Path(mooncake_peer.__file__)
        ended = subprocess.run(
            [sys.executable, "-I", script, "get", "127.0.0.1:1"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        self.assertEqual(ended.returncode, 2)
        self.assertRegex(ended.stderr, r"^error: No module named 'mooncake'\n$")


if __name__ == "__main__":
    unittest.main()
