"""Touch the pages of anonymous memory in random order: what bench_swap_device.py runs.

    python3 touches.py PAGES TOUCHES

It ends with a line of the seconds of the touches, of the faults for which the kernel read a page
meanwhile, and of the sum of what was read, which must be `expected`. Half of each page is random.
"""

import mmap
import random
import resource
import sys
import time
from array import array

PAGE = mmap.PAGESIZE
SEED = 5


def main(pages: int, touches: int) -> None:
    """Fill, touch, print."""
    source = random.Random(SEED)
    memory = mmap.mmap(-1, pages * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    # Pages of one allocation: a large page would be taken apart anyway.
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    for page in range(pages):
        at = page * PAGE
        memory[at] = page % 251
        memory[at + PAGE // 2 : at + PAGE] = source.randbytes(PAGE // 2)
    order = array("I", (source.randrange(pages) for _ in range(touches)))
    expected = sum(page % 251 for page in order)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
    began = time.monotonic()
    found = sum(memory[page * PAGE] for page in order)
    took_s = time.monotonic() - began
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt - before
    print(f"touch_s={took_s:.6f} faults={faults} sum={found} expected={expected}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
