"""Touch the pages of anonymous memory in random order: what bench_swap_device.py runs.

    python3 touches.py PAGES TOUCHES

Each touch is timed by itself. It ends with a line of the touches that took over 1 us, which is what
no touch of a local page takes and every fault does, with the tenth and the fiftieth percentile of
their times; of the faults for which the kernel read a page meanwhile; and of the sum of what was
read, which must be `expected`. Half of each page is random.
"""

import mmap
import random
import resource
import sys
import time
from array import array

PAGE = mmap.PAGESIZE
SEED = 5
# Between a touch of a local page and a fault.
FAULT_NS = 1_000
LONGEST_NS = (1 << 32) - 1


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
    found = 0
    times_ns = array("I", bytes(4 * touches))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
    for number, page in enumerate(order):
        began = time.perf_counter_ns()
        found += memory[page * PAGE]
        times_ns[number] = min(time.perf_counter_ns() - began, LONGEST_NS)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt - before
    slow = sorted(took for took in times_ns if took > FAULT_NS)
    p10, p50 = (slow[len(slow) * percent // 100] / 1e3 if slow else 0.0 for percent in (10, 50))
    print(
        f"slow={len(slow)} faults={faults} p10_us={p10:.3f} p50_us={p50:.3f} "
        f"sum={found} expected={expected}"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
