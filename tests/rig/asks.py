"""A tool that asks Messages through whatever proxy its environment names: `asks.py SESSION TEXT …`; standard library only.

`-` waits for a line on stdin, after a line on stdout that says it waits. A call that fails is made again, as tools do.
"""

import http.client
import json
import os
import ssl
import sys
import time
import urllib.parse
import urllib.request


def ask(text: str, session: str) -> str:
    body = {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    proxy = urllib.parse.urlsplit(os.environ["HTTPS_PROXY"])
    line = http.client.HTTPSConnection(proxy.hostname or "", proxy.port, timeout=60, context=ssl.create_default_context())
    line.set_tunnel("api.anthropic.com", 443)
    headers = {"content-type": "application/json", "x-api-key": "sk-tool", "x-session-id": session}
    try:
        line.request("POST", "/v1/messages", json.dumps(body), headers)
        answer = json.loads(line.getresponse().read())
    finally:
        line.close()
    return str(answer["content"][0]["text"] if "content" in answer else answer["error"]["message"])


def ask_until_answered(text: str, session: str) -> str:
    for _ in range(3_000):
        try:
            return ask(text, session)
        except OSError:
            time.sleep(0.05)
        except http.client.HTTPException:
            time.sleep(0.05)
    raise SystemExit("no answer")


def hello() -> int:
    through = urllib.request.build_opener(urllib.request.ProxyHandler({"http": os.environ["HTTPS_PROXY"]}))
    with through.open("http://routecodex.invalid/hello", timeout=60) as answer:
        return int(json.load(answer)["pid"])


def main() -> None:
    session, told = sys.argv[1], []
    pid = hello()
    for text in sys.argv[2:]:
        if text == "-":
            print(json.dumps({"waits": True, "pid": pid, "proxy": os.environ["HTTPS_PROXY"]}), flush=True)
            sys.stdin.readline()
        else:
            told.append(ask_until_answered(text, session))
    said = {"told": told, "proxy": os.environ["HTTPS_PROXY"], "no_proxy": os.environ["NO_PROXY"]}
    print(json.dumps({**said, "pid": pid, "last_pid": hello()}))


main()
