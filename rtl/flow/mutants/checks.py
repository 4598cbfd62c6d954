"""Checks that mutants of several parts are held to: a path for pytest and what it runs there."""

SCHEDULER = "tb/em_scheduler -k golden and -4"


def bench(module):
    """The bench of a module."""
    return f"tb/{module}"


def proof(module):
    """The proof of a module."""
    return f"formal -k {module}_proof"
