"""`routecodex check`: all mistakes with their lines, and where calls go."""

from __future__ import annotations

from tests.addons.control.commands.conftest import Lister
from tests.addons.control.commands.person import Person

WRONG = """a: 1
proxy: {timeouts: {firstByteMs: soon}}
virtualrouter:
  providers:
    p: {baseURL: "https://p.example", auth: {type: bad}, models: {}}
    q: {baseURL: "https://q.example", auth: none, timeot: 4}
  routing: {default: [origin]}
plugins: [x.txt]
"""


def test_the_shipped_file_has_no_mistakes(person: Person) -> None:
    assert person.types("check") == 0
    assert "no mistakes" in person.said
    assert "default  origin: where the tool was going" in person.said
    assert "provider add" in person.said


def test_every_mistake_at_once_with_its_line(person: Person) -> None:
    """Those of the form and those of the meaning."""
    path = person.file("c.yaml", WRONG)
    assert person.types("check", str(path)) == 1
    lines = [line.strip().partition(": ")[0] for line in person.said.splitlines()[1:-1]]
    assert lines == ["c.yaml:1", "c.yaml:2", "c.yaml:5", "c.yaml:6", "c.yaml:8"]
    assert person.asks("check", str(path))["mistakes"][0] == "c.yaml:1: a: unknown key"


def test_where_calls_go(person: Person, lister: Lister) -> None:
    path = person.file("c.yaml", lister.config())
    assert person.types("check", str(path)) == 0
    assert "thinking  glm.glm-4.7" in person.said
    assert "glm: glm-4.7, glm-old · key primary" in person.said
    assert "sk-right" not in person.said
    assert person.asks("check", str(path))["routes"]["thinking"][0]["targets"] == ["glm.primary.glm-4.7"]


def test_a_variable_that_is_not_set_is_told(person: Person, lister: Lister) -> None:
    assert person.types("check", str(person.file("c.yaml", lister.config("${NO_SUCH_VARIABLE}")))) == 0
    assert "NO_SUCH_VARIABLE is not set: key glm.primary is off" in person.said
    assert "key primary (off)" in person.said


def test_a_plugin_is_read_and_not_run(person: Person, lister: Lister) -> None:
    path = person.file("c.yaml", lister.config() + "plugins: [good.py, bad.py, gone.py]\n")
    person.file("good.py", f"open({str(person.home / 'was-run')!r}, 'w')")
    person.file("bad.py", "def (")
    assert person.types("check", str(path)) == 1
    assert f"{person.home / 'bad.py'}:1: the plugin is no Python" in person.said
    assert "gone.py: the plugin cannot be read" in person.said
    assert not (person.home / "was-run").exists()


def test_a_file_that_is_not_there(person: Person) -> None:
    assert person.types("check", str(person.home / "gone.yaml")) == 2
    assert "there is no such file" in person.warned
