"""What touches mitmproxy: hooks, flows, the relay that keeps an answer open. It carries, and decides nothing."""
