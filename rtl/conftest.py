"""What all benches share: the flow on the path, and a skip that is loud where a tool is missing."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from flow.results import CPU_SECONDS, Results, cpu_seconds
from flow.tools import ToolMissingError


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """A test whose tool is not there is skipped and counted; on a CI server it fails."""
    before = cpu_seconds()
    try:
        return (yield)
    except ToolMissingError as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(missing))
    finally:
        item.user_properties.append((CPU_SECONDS, cpu_seconds() - before))


def pytest_configure(config):
    """Benches import their neighbours in the simulator's process, which is not this one."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Results())
    for folder in sorted((Path(__file__).parent / "tb").iterdir()):
        sys.path.append(str(folder))
