"""What runs, and where: the port, who uses it, the configuration, the log, what is not well. Exit code 3 where no proxy runs."""

from __future__ import annotations

import argparse
import contextlib

from .. import servers
from ..line import Said, ask
from ..places import config_file, places
from ..say import Failed, print_json

NOT_RUNNING = 3
_LIMIT_S = 5.0


def arguments(parser: argparse.ArgumentParser) -> None:
    pass


def act(given: argparse.Namespace) -> int:
    said = ask(places(), {"want": "status"})
    if said is not None and said.get("port") is not None:
        return show(said, as_json=given.json)
    config = str(config_file())
    if given.json:
        print_json({"running": False, "config": config, "log": str(places().log)})
    else:
        print(
            f"The proxy does not run: `routecodex run claude` starts it, and so does `routecodex start`.\nConfiguration: {config}"
        )
    return NOT_RUNNING


def show(said: Said, *, as_json: bool) -> int:
    code = 0 if said["running"] else NOT_RUNNING
    said = {**said, "warnings": _warnings(said["server"]) if said["running"] else []}
    if as_json:
        print_json(said)
        return code
    if said["running"]:
        print(f"The proxy runs at http://127.0.0.1:{said['port']} (process {said['pid']}).")
    else:
        print(f"The proxy is just starting on port {said['port']}: `routecodex log` says how far it is.")
    tools = "1 tool" if said["tools"] == 1 else f"{said['tools']} tools"
    print(f"Used by:       {tools}" + ("; kept until `routecodex stop`" if said["kept"] else "; it ends with the last"))
    rows = {"Configuration": said["config"], "Log": said["log"], "Certificate": said["certificate"]}
    if said["web"]:
        rows["Look inside"] = said["web"]
    if said["upstream"]:
        rows["Goes through"] = said["upstream"]
    if workers := said["workers"]:
        count = sum(worker["connections"] for worker in workers)
        were = "was" if said["replaced"] == 1 else "were"
        replaced = f"; {said['replaced']} died and {were} replaced" if said["replaced"] else ""
        rows["Workers"] = f"{len(workers)} processes with {count} connection{'' if count == 1 else 's'}{replaced}"
    if said["deaths"]:
        times = "once" if said["deaths"] == 1 else f"{said['deaths']} times"
        rows["Died"] = f"{times}; it came back"
    for name, value in rows.items():
        print(f"{name + ':':14} {value}")
    for line in said["warnings"]:
        print(f"To know:       {line}")
    return code


def _warnings(id: str) -> list[str]:
    """What the proxy itself says is not well; one that does not answer has said so in its log."""
    with contextlib.suppress(servers.Gone, Failed):
        for server in servers.known():
            if server.id == id:
                return [str(line) for line in server.ask("status", limit_s=_LIMIT_S)["warnings"]]
    return []
