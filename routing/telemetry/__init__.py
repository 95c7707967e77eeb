"""What calls come to, for whoever watches many of them: numbers and spans, by the names of OpenTelemetry's GenAI conventions."""
