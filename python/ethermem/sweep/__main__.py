"""`python -m ethermem.sweep`: `ethermem sweep`, with a choice of the engine for the points."""

import argparse
import sys
import time

from .. import _native
from . import engine_of, run_missing

EPILOG = """\
Finished points are kept in FILE.journal. After Ctrl-C, a kill or a full disk the same command goes
on: only missing points run. docs/how-to/sweep.md says how to write a sweep.
"""


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser("python -m ethermem.sweep", epilog=EPILOG)
    add = parser.add_argument
    add("sweep", metavar="SWEEP", help="TOML file: a scenario, keys to vary, fabrics and seeds")
    add("--out", metavar="FILE", required=True, help="Parquet file of the results, a row a point")
    add(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="set a key of the scenario for all points; repeat it for more keys",
    )
    add("--engine", default="local", help="what runs the points: local (default) or ray")
    add(
        "--workers",
        metavar="N",
        type=int,
        help="points to run at once; all cores by default; the results are the same bytes",
    )
    add("--address", help="of the Ray cluster; by default RAY_ADDRESS, or one that is started")
    add("--format", choices=["table", "json"], default="table", help="how to print the results")
    return parser.parse_args()


class Progress:
    """Reports on the standard error, ten times, how far a sweep is and how long it may take."""

    def __init__(self, done: int, points: int) -> None:
        self.start = self.told = done
        self.points = points
        self.started = time.monotonic()

    def __call__(self, done: int) -> None:
        """Note the number of finished points."""
        if done * 10 // self.points == self.told * 10 // self.points:
            return
        self.told = done
        elapsed_s = time.monotonic() - self.started
        left_s = elapsed_s * (self.points - done) / (done - self.start)
        print(f"{done} of {self.points} points, {left_s:.0f} s left", file=sys.stderr)


def main() -> int:
    """Run the sweep; returns the exit codes of the command."""
    given = arguments()
    left = "no file was written"
    try:
        engine = engine_of(given.engine, given.workers, given.address)
        session = _native.Sweep(given.sweep, given.set, given.out)
        left = f"finished points are kept in {session.journal}: the same command goes on"
        kept = session.points - len(session.missing())
        if kept > 0:
            print(f"{kept} of {session.points} points are there already", file=sys.stderr)
        run_missing(session, engine, Progress(kept, session.points))
        json, table = session.write()
    except _native.EthermemError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1 if isinstance(error, _native.InvariantError) else 2
    except KeyboardInterrupt:
        print(f"interrupted; {left}", file=sys.stderr)
        return 130
    print(json if given.format == "json" else table, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
