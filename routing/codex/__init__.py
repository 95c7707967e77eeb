"""Codex's WebSocket: frames in, whole requests out; answers in, frames out. What only a provider would know is kept here."""
