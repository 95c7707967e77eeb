"""Look for what keeps things from working: this machine, the configuration, providers and keys, what leads around the proxy.

Every fault comes with its next step. Exit code 1 where something does not work.
"""

from __future__ import annotations

import argparse
import os

from .. import places
from ..say import print_json


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", default="", help="another configuration than the one in force")


def act(given: argparse.Namespace) -> int:
    from ..checks import Person, examine

    person = Person(os.environ, places.own_config().parents[2], places.places(), given.config)
    found = list(examine(person))
    grave = any(fault.grave for _, faults in found for fault in faults)
    if given.json:
        told = {name: [{"what": one.what, "next": one.next_step, "grave": one.grave} for one in faults] for name, faults in found}
        print_json({"well": not grave, "checks": told})
        return int(grave)
    for name, faults in found:
        mark = "ok  " if not faults else "BAD " if any(fault.grave for fault in faults) else "note"
        print(f"{mark}  {name}")
        for fault in faults:
            print(f"        {fault.what}\n        -> {fault.next_step}")
    print("\nSomething does not work: see BAD." if grave else "\nNothing keeps tags from working here.")
    return int(grave)
