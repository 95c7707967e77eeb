"""OpenAI Chat Completions: read, write, history."""
