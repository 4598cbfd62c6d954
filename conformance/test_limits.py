"""The page of limits matches the command."""

from pathlib import Path

from conformance import limits
from conformance.drivers import ROOT


def test_the_page_of_limits_is_that_of_the_code(command: Path) -> None:
    page = (ROOT / "docs" / "reference" / "limits.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert rows == limits.table(limits.load(command))
