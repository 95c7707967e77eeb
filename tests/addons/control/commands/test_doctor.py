"""`routecodex doctor` as it is typed."""

from __future__ import annotations

from routecodex.addons.control.checks import CHECKS
from tests.addons.control.commands.conftest import Lister
from tests.addons.control.commands.person import Person


def test_every_check_is_named_and_faults_have_a_next_step(person: Person, lister: Lister) -> None:
    config = person.file("c.yaml", lister.config("sk-wrong"))
    assert person.types("doctor", "--config", str(config)) == 1
    assert all(name in person.said for name in CHECKS)
    lines = person.said.splitlines()
    place = next(at for at, line in enumerate(lines) if "the key is refused" in line)
    assert lines[place + 1].strip().startswith("-> ")
    told = person.asks("doctor", "--config", str(config))
    assert told["well"] is False
    assert set(told["checks"]) == set(CHECKS)


def test_a_configuration_that_is_not_there(person: Person) -> None:
    assert person.types("doctor", "--config", str(person.home / "gone.yaml")) == 1
    assert "there is no such file" in person.said
