"""Yosys as a program: runs the commands it is given, as `yosys -p` does, in pyosys.

The wheel has the library and no program, and `sby` starts one. It takes what sby passes:
`-ql LOG SCRIPT` or `-p COMMANDS`.
"""

import sys

from pyosys import libyosys


def main(arguments):
    """Runs scripts and commands in order on one design."""
    design = libyosys.Design()
    words = iter(arguments)
    for word in words:
        if word == "-ql":
            libyosys.log_to_file(next(words)) if hasattr(libyosys, "log_to_file") else next(words)
        elif word == "-p":
            for command in next(words).split(";"):
                libyosys.run_pass(command.strip(), design)
        else:
            libyosys.run_pass(f"script {word}", design)


if __name__ == "__main__":
    main(sys.argv[1:])
