"""What the vendors' official SDKs hear in bytes, without a network. Run by a Python that has them, driven by `test_hosts.py`.

{"sdk": "anthropic", "way": "helper", "status": 200, "type": "text/event-stream", "body": "event: …"}   → as `run.py` tells it
"""

from __future__ import annotations

import json
import sys

import anthropic
import httpx2
import openai
import run
from google import genai
from google.genai import types

said = httpx2.Response(200)
transport = httpx2.MockTransport(lambda request: said)
http = httpx2.Client(transport=transport)

run.Anthropic.client = anthropic.Anthropic(api_key=run.KEY, http_client=http, max_retries=0)
run.Chat.client = run.Responses.client = openai.OpenAI(api_key=run.KEY, http_client=http, max_retries=0)
run.Google.client = genai.Client(api_key=run.KEY, http_options=types.HttpOptions(client_args={"transport": transport}))

for line in sys.stdin:
    command = json.loads(line)
    said = httpx2.Response(command["status"], headers={"content-type": command["type"]}, content=command["body"].encode())
    try:
        result = run.SDKS[command["sdk"]]().say("hello", command["way"])
    except run.Broken as broken:
        result = {"error": str(broken.cause), "text": broken.text}
    except Exception as error:
        result = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(result), flush=True)
