"""The tests: the tree mirrors the product; `rig/` holds the fake provider, the real proxy and the clients."""
