"""For people: the `routecodex` command, and the proxy that runs in the background for it."""
