"""What mitmproxy's windows show of our flows: the conversation in them, each leg by itself, and pages and commands beside it."""
