"""Applications that others wrote, run for real: with known data and a checked answer."""
