"""Records what real clients send: `python -m tests.record`."""
