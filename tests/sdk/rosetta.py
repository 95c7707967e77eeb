"""Calls and answers through llm-rosetta. Executed by a Python that has it; driven by `tests/sdk/test_rosetta.py`.

One JSON command a line on stdin, one JSON result a line on stdout:

    {"client": "anthropic-messages", "spoken": "openai-chat", "call": {…}, "answer": {…}, "events": [{…}]}
    → {"call": {…}, "answer": {…}, "events": [{…}]}, each in the other's dialect
    → {"error": "…"}

`answer` and `events` may be missing.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from llm_rosetta import ConversionPipeline

NAMES = {
    "anthropic-messages": "anthropic",
    "openai-chat": "openai_chat",
    "openai-responses": "openai_responses",
    "gemini-chat": "google",
}


def translate(command: dict[str, Any]) -> dict[str, Any]:
    pipeline = ConversionPipeline(NAMES[command["client"]], NAMES[command["spoken"]])
    found: dict[str, Any] = {"call": pipeline.convert_request(command["call"])}
    if "answer" in command:
        found["answer"] = pipeline.convert_response(command["answer"])
    if "events" in command:
        processor = pipeline.create_stream_processor()
        found["events"] = [event for chunk in command["events"] for event in processor.process_chunk(chunk)]
    return found


def main() -> None:
    for line in sys.stdin:
        try:
            result = translate(json.loads(line))
        except Exception as error:
            result = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(result, default=str), flush=True)


if __name__ == "__main__":
    main()
