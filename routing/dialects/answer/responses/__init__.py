"""OpenAI Responses: read, write, history."""
