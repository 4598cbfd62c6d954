"""The conformance matrix: every operation, on every pool, at every limit, beside every neighbour."""
