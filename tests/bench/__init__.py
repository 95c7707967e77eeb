"""The benchmark: `python -m tests.bench` measures this addon against plain mitmdump, side by side in one run."""
