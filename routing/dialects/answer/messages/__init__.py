"""Anthropic Messages: read, write, history."""
