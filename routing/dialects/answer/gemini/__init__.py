"""Gemini's generateContent: read, write, history."""
