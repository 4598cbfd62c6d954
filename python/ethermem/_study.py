"""Studies a program, in a separate process.

`ethermem.experiments` starts this file directly, without the package: every import here is part of
each run that the study measures.
"""

import importlib.machinery
import importlib.util
import json
import signal
import sys
from pathlib import Path


def main(module: str, asked: str, answer: str) -> None:
    """Run the request, and write the result to `answer`."""
    # Python ignores this signal, and a child process would inherit that.
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    # A signal ends the program, and the study with it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    loader = importlib.machinery.ExtensionFileLoader("ethermem._native", module)
    spec = importlib.util.spec_from_loader("ethermem._native", loader)
    assert spec is not None
    native = importlib.util.module_from_spec(spec)
    loader.exec_module(native)
    told: dict[str, str | None]
    try:
        words = json.loads(asked)
        done = native.study(words["request"], words["words"], words["threads"])
        told = {"json": done[0], "text": done[1], "page": done[2] and str(done[2])}
    except native.EthermemError as error:
        told = {"error": type(error).__name__, "line": str(error)}
    Path(answer).write_text(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
