"""The conformance matrix: each operation, on each pool, at each limit, beside others."""
