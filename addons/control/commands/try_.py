"""A first success, without any key or network: a message with a tag goes through the proxy, and `echo` answers it."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import ssl
from typing import Any
from urllib.parse import urlsplit

from ...hello import Hello
from .. import surroundings
from ..background import options, ready, url
from ..places import places
from ..say import Failed, print_json

HOST = "api.anthropic.com"
_LIMIT_S = 30.0


def arguments(parser: argparse.ArgumentParser) -> None:
    options(parser)
    parser.add_argument("message", nargs="?", default="<**echo**> hello", help="what is typed (default: %(default)s)")


def act(given: argparse.Namespace) -> int:
    proxy, known = surroundings.upstream(places(), os.environ)
    line = None
    if known is None:
        line, said, known = ready("lease", given, proxy)
        proxy = url(said)
    try:
        status, answer = _call(proxy, known, given.message)
    finally:
        if line is not None:
            line.close()
    told = _text(answer)
    if given.json:
        print_json({"typed": given.message, "proxy": proxy, "status": status, "answer": told})
    elif status == 200:
        print(f"You typed:       {given.message}")
        print(f"The tool asked:  https://{HOST}/v1/messages, model claude-sonnet-4-5")
        print(f"The proxy at {surroundings.without_password(proxy)} took the tag off and decided who answers.")
        print(f"The answer:      {told}")
        print("\nIt works. Now the same in a real tool: routecodex run claude, and type <**status**>.")
    if status != 200:
        raise Failed(f"the answer was {status}: {told}", "`routecodex log` says what the proxy did")
    return 0


def _call(proxy: str, known: Hello, text: str) -> tuple[int, Any]:
    parts = urlsplit(proxy)
    trusting = ssl.create_default_context(cadata=known.certificate)
    line = http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=_LIMIT_S, context=trusting)
    line.set_tunnel(HOST, 443)
    body = {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": [{"role": "user", "content": text}]}
    headers = {
        "content-type": "application/json",
        "x-api-key": "none",
        "anthropic-version": "2023-06-01",
        "user-agent": "routecodex-try",
    }
    try:
        line.request("POST", "/v1/messages", json.dumps(body), headers)
        answer = line.getresponse()
        return answer.status, json.loads(answer.read())
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise Failed(f"the call did not come through: {error}", "`routecodex log` says what the proxy did") from None
    finally:
        line.close()


def _text(answer: Any) -> str:
    try:
        if "content" in answer:
            return "".join(str(block.get("text", "")) for block in answer["content"])
        return str(answer["error"]["message"])
    except (KeyError, TypeError, AttributeError):
        return json.dumps(answer)
