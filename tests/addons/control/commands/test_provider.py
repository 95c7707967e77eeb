"""`routecodex provider add`: the shipped example out of its comment, and not one other character."""

from __future__ import annotations

import difflib
import stat

import pytest

from routecodex.addons.control.places import SHIPPED
from tests.addons.control.commands.person import Person

NAMES = ["anthropic", "openai", "glm", "deepseek", "openrouter", "gemini", "local"]


@pytest.mark.parametrize("name", NAMES)
def test_every_example_can_be_added(person: Person, name: str) -> None:
    key = person.file("keys/one", "sk-of-mine\n")
    assert person.types("provider", "add", name, "--key-file", str(key)) == 0, person.warned
    assert stat.S_IMODE(person.config.stat().st_mode) == 0o600
    was, now = SHIPPED.read_text().splitlines(), person.config.read_text().splitlines()
    changed = [line for line in difflib.ndiff(was, now) if line[0] in "+-"]
    assert all(line[1:].lstrip().startswith("#") for line in changed if line[0] == "-")
    assert len([line for line in changed if line[0] == "-"]) == len([line for line in changed if line[0] == "+"])
    assert person.types("check") == 0
    assert f"{name}: " in person.said
    assert "sk-of-mine" not in person.said + person.config.read_text()


def test_one_after_the_other(person: Person) -> None:
    for name in NAMES:
        assert person.types("provider", "add", name) == 0, person.warned
    shipped, mine = SHIPPED.read_text().splitlines(), person.config.read_text().splitlines()
    assert len(shipped) == len(mine)
    person.types("check")
    assert all(f"{name}: " in person.said for name in NAMES)


def test_without_a_key_file_the_variable_is_named(person: Person) -> None:
    assert person.types("provider", "add", "glm") == 0
    assert "GLM_KEY is not set: key glm.primary is off" in person.said
    assert ".env" in person.said


def test_two_key_files_are_two_keys(person: Person) -> None:
    files = [person.file("keys/one", "sk-one"), person.file("keys/two", "sk-two")]
    told = person.asks("provider", "add", "glm", "--key-file", str(files[0]), "--key-file", "~/keys/two")
    assert told["ready"] == ["primary", "backup"]
    assert told["warnings"] == []
    assert '"${file:~/keys/two}"' in person.config.read_text()


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_file_of_ones_own_keeps_its_spacing_and_its_ends_of_lines(person: Person, ending: str) -> None:
    text = ending.join(
        [
            "# mine",
            "virtualrouter:",
            "   providers:   # these",
            "",
            "       local:  # here",
            "           baseURL:  http://localhost:1/v1",
        ]
    )
    text += f"{ending}           auth: none{ending}   routing: {{default: [origin ,  local.x]}}{ending}"
    path = person.file("own.yaml", text)
    assert person.types("provider", "add", "glm", "--config", str(path)) == 0, person.warned
    now = path.read_bytes().decode()
    kept = now.splitlines(keepends=True)
    added = [line for line in kept if line not in text.splitlines(keepends=True)]
    assert "".join(line for line in kept if line not in added) == text
    assert added[0] == f"       glm:{ending}"
    assert all(line.endswith(ending) for line in added)


@pytest.mark.parametrize(
    "words, said",
    [
        (["nobody"], "there is no example nobody"),
        (["glm", "--key-file", "gone"], "the key cannot be read"),
        (["glm", "--key-file", "HOME/empty"], "does not hold a key"),
        (["glm", "--key-file", "HOME/talk"], "does not hold a key"),
    ],
)
def test_what_cannot_be_added_changes_nothing(person: Person, words: list[str], said: str) -> None:
    person.file("empty", " \n")
    person.file("talk", "my key is sk-1")
    assert person.types("provider", "add", *(word.replace("HOME", str(person.home)) for word in words)) != 0
    assert said in person.warned
    assert not person.config.exists()


def test_what_is_there_is_not_added_again(person: Person) -> None:
    person.types("provider", "add", "glm")
    before = person.config.read_bytes()
    assert person.types("provider", "add", "glm") == 1
    assert "already" in person.warned
    assert person.config.read_bytes() == before


def test_a_file_with_mistakes_is_not_touched(person: Person) -> None:
    path = person.file("own.yaml", "virtualrouter: {routing: {default: [nobody]}}\n")
    assert person.types("provider", "add", "glm", "--config", str(path)) == 1
    assert "own.yaml:1" in person.warned
    flow = person.file("flow.yaml", "virtualrouter: {providers: {}, routing: {default: [origin]}}\n")
    assert person.types("provider", "add", "glm", "--config", str(flow)) == 2
    assert "providers:" in person.warned


def test_a_key_file_that_others_may_read_is_named_once(person: Person) -> None:
    path = person.file("open", "sk-1\n")
    path.chmod(0o644)
    assert person.types("provider", "add", "openai", "--key-file", str(path)) == 0
    assert person.said.count("chmod 600") == 1
    assert "Put it into" not in person.said


@pytest.mark.parametrize("content", ["GLM_KEY=sk-1", '"sk-1"'])
def test_a_key_file_that_holds_more_than_the_key_is_told_and_no_variable_is_asked_for(person: Person, content: str) -> None:
    path = person.file("key", content)
    path.chmod(0o600)
    assert person.types("provider", "add", "glm", "--key-file", str(path)) == 0
    assert "key glm.primary" in person.said
    assert "Put it into" not in person.said


def test_a_key_for_what_takes_none_is_not_lost_silently(person: Person) -> None:
    key = person.file("key", "sk-key")
    assert person.types("provider", "add", "local", "--key-file", str(key)) == 0
    assert "local takes no key: --key-file was not used" in person.said
