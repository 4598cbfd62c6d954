#!/usr/bin/env python3
"""Compile the Python files given as arguments, without leaving byte code behind."""

import sys
from pathlib import Path


def main(paths):
    """Report every file that does not compile; the exit code says whether there was one."""
    broken = 0
    for path in paths:
        try:
            compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            broken += 1
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
