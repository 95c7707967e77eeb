"""One module per command, the same names in the same order: `arguments(parser)`, `act(given)`, which returns the exit code."""
