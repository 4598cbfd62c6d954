"""Run a command under a time limit: a hung one is killed, after a stack of each of its threads."""

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

# Exit code of a command that exceeded its limit, as in timeout(1).
OVER_LIMIT = 124
# Interval at which a runner's tests are checked.
LOOK_S = 5
GDB = ["gdb", "-batch", "-nx", "-ex", "set pagination off", "-ex", "thread apply all backtrace 40"]


def parents():
    """Return the parent of every process on this machine."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        # The program's name stands in brackets, and may contain any character.
        found[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])
    return found


def descendants(root):
    """Return the processes below `root`, parents first."""
    parent_of = parents()
    below = [root]
    for process in below:
        below.extend(child for child, parent in parent_of.items() if parent == process)
    return below[1:]


def name(process):
    """Return the name of a process's program; empty if it has ended."""
    try:
        return Path(f"/proc/{process}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def stack(process):
    """Return the stacks of the threads of one process, or the reason why there are none."""
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ")
        ended = subprocess.run(
            [*GDB, "-p", str(process)],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=False,
            encoding="utf-8",
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"process {process}: no stack: {error}"
    shown = command.decode(errors="replace").strip()
    return f"process {process}: {shown}\n{ended.stdout}{ended.stderr}"


def show_stacks(processes):
    """Print the stacks of the processes."""
    for process in processes:
        print(stack(process), flush=True)


def kill_all(root):
    """Kill a process and all its descendants, until none is left."""
    for _ in range(100):
        left = [root, *descendants(root)]
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if len(left) == 1:
            return
        time.sleep(0.1)


def age_s(process):
    """Return the age of a process in seconds; 0 if it has ended."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    began_ticks = int(stat.rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - began_ticks / os.sysconf("SC_CLK_TCK")


class Watch(threading.Thread):
    """Ends `process` when it has run for `limit_s`, with its stacks on the standard output.

    A runner with a process per test ends a hung test by itself, without stacks. The stacks of each
    process that `runner` started and that is `stuck_s` old are shown here.
    """

    def __init__(self, process, limit_s, runner=None, stuck_s=0):
        super().__init__(daemon=True)
        self.process = process
        self.limit_s = limit_s
        self.runner = runner
        self.stuck_s = stuck_s
        self.shown = set()
        self.is_over = False
        self.ended = threading.Event()

    def show_stuck(self):
        """Show the stacks of each test that has run for too long, once."""
        below = descendants(self.process.pid)
        parent_of = parents()
        for test in below:
            started_by = name(parent_of.get(test, 0))
            if started_by == self.runner and test not in self.shown and age_s(test) > self.stuck_s:
                self.shown.add(test)
                print(f"no end after {self.stuck_s} s: stacks of a test", flush=True)
                show_stacks([test, *descendants(test)])

    def run(self):
        """Wait for the end or the limit, whichever is first."""
        limit = time.monotonic() + self.limit_s
        while (left_s := limit - time.monotonic()) > 0:
            if self.ended.wait(min(left_s, LOOK_S)):
                return
            if self.runner:
                self.show_stuck()
        self.is_over = True
        print(f"over the limit of {self.limit_s} s: stacks of what still runs", flush=True)
        show_stacks(descendants(self.process.pid))
        kill_all(self.process.pid)


def run(command, cwd, limit_s, runner=None, stuck_s=0):
    """Run a command, pass on its output, and return its exit code.

    A missing program has 127, one over its limit `OVER_LIMIT`, and one that a signal ended
    128 and the signal's number: the shell's convention.
    """
    print(f"$ {' '.join(map(str, command))}", flush=True)
    try:
        process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", flush=True)
        return 127
    watch = Watch(process, limit_s, runner, stuck_s)
    watch.start()
    try:
        code = process.wait()
    except BaseException:
        kill_all(process.pid)
        raise
    finally:
        watch.ended.set()
    watch.join()
    if watch.is_over:
        return OVER_LIMIT
    return 128 - code if code < 0 else code
