"""Fills a dictionary with strings, then reads and replaces some: every answer is in the result."""

import hashlib
import sys
import time

MIX = 0x9E3779B97F4A7C15
WORD = (1 << 64) - 1


def mixed(number: int) -> int:
    """Mix a 64-bit number."""
    number = (number + 1) * MIX & WORD
    number = (number ^ (number >> 31)) * 0xBF58476D1CE4E5B9 & WORD
    return number ^ (number >> 29)


def value(number: int, turn: int) -> str:
    """Give a string of 60 to 139 characters."""
    word = f"{mixed(number * 31 + turn):016x}"
    return word * 9 if number % 3 == 0 else (word * 9)[: 60 + mixed(number) % 80]


def main(entries: int, operations: int) -> None:
    """Fill, use, and print the answer."""
    begun = time.monotonic()
    strings = {f"key-{number}": value(number, 0) for number in range(entries)}
    sha = hashlib.sha256()
    place = 1
    for turn in range(operations):
        place = mixed(place ^ turn) % entries
        key = f"key-{place}"
        found = strings[key]
        # Where the next operation goes follows from what this one read.
        place ^= int(found[:8], 16)
        if turn % 2:
            strings[key] = value(place, turn)
        sha.update(found.encode())
    for key in sorted(strings)[:: max(entries // 1000, 1)]:
        sha.update(strings[key].encode())
    took_s = time.monotonic() - begun
    print(f"answer={sha.hexdigest()[:32]} measured_s={took_s:.3f}")


main(int(sys.argv[1]), int(sys.argv[2]))
