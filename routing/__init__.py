"""The product's mind: reads calls, obeys tags, chooses targets. No mitmproxy, no sockets; time and randomness are arguments."""
