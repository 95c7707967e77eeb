"""Plugin files: what is loaded, and what a person reads who made a mistake in one."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from routecodex.routing.errors import ConfigError
from routecodex.routing.turn.loading import LARGEST, load_plugins
from routecodex.routing.turn.plugins import Plugin
from tests.routing.turn.acting import Scene, run, tsaid

CANARY = "sk-canary-0123456789abcdef"
HEAD = "from routecodex.routing.turn.plugins import Plugin, ServerTool\nasync def roll(turn, arguments): ...\n"
GOOD = HEAD + "class Good(Plugin):\n    pass\nplugins = [Good()]\n"


def put(folder: Path, name: str, source: str) -> Path:
    path = folder / name
    path.write_text(dedent(source), encoding="utf-8")
    return path


def test_plugins_in_the_order_of_the_files_and_of_each_list(tmp_path: Path) -> None:
    one = put(tmp_path, "one.py", HEAD + "class A(Plugin): pass\nclass B(Plugin): pass\nplugins = [B(), A()]\n")
    two = put(tmp_path, "two.py", HEAD + "class C(Plugin): pass\nplugins = (C(),)\n")
    assert [plugin.name for plugin in load_plugins([str(two), one])] == ["c", "b", "a"]
    assert load_plugins([]) == ()


def test_a_changed_file_is_loaded_anew_within_the_same_second(tmp_path: Path) -> None:
    path = put(tmp_path, "mine.py", HEAD + "class A(Plugin):\n    name = 'first'\nplugins = [A()]\n")
    stamp = path.stat().st_mtime_ns
    (first,) = load_plugins([path])
    put(tmp_path, "mine.py", HEAD + "class A(Plugin):\n    name = 'again'\nplugins = [A()]\n")
    os.utime(path, ns=(stamp, stamp))
    (again,) = load_plugins([path])
    assert (first.name, again.name) == ("first", "again")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["mine.py"]


def test_modules_beside_the_plugin(tmp_path: Path) -> None:
    """Found while it loads; the search path is as before, and hides nothing meanwhile."""
    put(tmp_path, "routecodex_test_words.py", "WORD = 'hello'\n")
    put(tmp_path, "tabnanny.py", 'raise RuntimeError("the wrong one")\n')
    source = "import json, tabnanny\nfrom routecodex_test_words import WORD\n" + GOOD.replace(
        "pass", "name = json.loads(json.dumps(WORD))"
    )
    before = list(sys.path)
    assert "tabnanny" not in sys.modules
    try:
        (found,) = load_plugins([put(tmp_path, "mine.py", source)])
    finally:
        sys.modules.pop("routecodex_test_words", None)
        sys.modules.pop("tabnanny", None)
    assert (found.name, sys.path) == ("hello", before)


def test_the_search_path_is_as_before_where_the_file_fails(tmp_path: Path) -> None:
    before, modules = list(sys.path), set(sys.modules)
    with pytest.raises(ConfigError):
        load_plugins([put(tmp_path, "mine.py", "1 / 0\n")])
    assert (sys.path, set(sys.modules)) == (before, modules)


def test_two_files_of_one_name(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    files = [put(tmp_path / name, "mine.py", GOOD.replace("Good", name.upper())) for name in "ab"]
    one, two = load_plugins(files)
    assert (one.name, two.name) == ("a", "b")
    assert sys.modules[type(one).__module__] is not sys.modules[type(two).__module__]


def test_dataclasses_and_the_files_own_annotations(tmp_path: Path) -> None:
    source = """
        from dataclasses import dataclass, field
        from routecodex.routing.turn.plugins import Plugin

        @dataclass
        class Mine(Plugin):
            words: list[str] = field(default_factory=list)
            def later(self, other: NotYet = None): ...

        class NotYet: ...
        plugins = [Mine()]
    """
    path = put(tmp_path, "mine.py", "from __future__ import annotations\n" + dedent(source))
    (found,) = load_plugins([path])
    assert found.name == "mine"
    put(tmp_path, "mine.py", source)
    with pytest.raises(ConfigError, match=r"mine\.py:8: NameError: name 'NotYet' is not defined while it was loaded"):
        load_plugins([path])


def test_a_loaded_plugin_runs_and_its_errors_name_its_line(tmp_path: Path) -> None:
    source = """
        from routecodex.routing.turn.plugins import Plugin

        class Mine(Plugin):
            async def on_after_request(self, turn, after):
                raise ValueError("secret")

        plugins = [Mine()]
    """
    scene = Scene(list(load_plugins([put(tmp_path, "mine.py", source)])))

    async def turn() -> None:
        await scene.begin()
        with pytest.raises(Exception, match="Plugin mine failed"):
            await scene.life.after_request(tsaid())

    run(turn())
    assert scene.warnings == ["Plugin mine failed: on_after_request raised ValueError (mine.py:6)"]


TOOL = "ServerTool('{}', '', {{'type': 'object'}}, roll)"
WRONG = [
    ("x = (\n", 1, "it is not valid Python ('(' was never closed): correct the line"),
    (f"key = '{CANARY}\n", 1, "it is not valid Python (unterminated string literal (detected at line 1)): correct the line"),
    ("x = 1\n\0", None, None),
    ("a = 1\nb = c\n", 2, "NameError: name 'c' is not defined while it was loaded: correct the line"),
    (f"raise ValueError('{CANARY}')\n", 1, "ValueError while it was loaded: correct the line"),
    (
        "def f():\n    import nothing_of_this_name\nf()\n",
        2,
        "ModuleNotFoundError: No module named 'nothing_of_this_name': install it into the proxy's own Python, or put it beside "
        "the plugin",
    ),
    ("import sys\nsys.exit(1)\n", 2, "SystemExit while it was loaded: a plugin must not end the proxy"),
    ("", None, "it names no plugins: end the file with: plugins = [YourPlugin()]"),
    (HEAD + "class Mine(Plugin): pass\n", None, "it names no plugins: end the file with: plugins = [Mine()]"),
    (HEAD + "plugins = []\n", 3, "`plugins` must be a list of plugins, such as [YourPlugin()]"),
    (HEAD + "plugins = Plugin()\n", 3, "`plugins` must be a list of plugins, such as [YourPlugin()]"),
    (HEAD + "class Mine(Plugin): pass\nplugins = [Mine]\n", 4, "`plugins` holds the class Mine: write Mine()"),
    (HEAD + "plugins = [5]\n", 3, "`plugins` holds an object of the class int, which is no Plugin"),
    (
        HEAD + "class Mine(Plugin):\n    def wants(self, turn): ...\n    def on_turn_end(self, turn): ...\nplugins = [Mine()]\n",
        5,
        "on_turn_end must be `async def`",
    ),
    (
        HEAD + "class Mine(Plugin):\n    async def on_stream_data(self, turn, data): ...\nplugins = [Mine()]\n",
        4,
        "on_stream_data must be a plain `def`: it is called while an answer streams",
    ),
    (
        HEAD + "class Mine(Plugin):\n    async def on_after_request(self, after): ...\nplugins = [Mine()]\n",
        4,
        "on_after_request must be written on_after_request(self, turn, after)",
    ),
    (
        HEAD + "class Mine(Plugin):\n\n    async def on_turn_started(self, turn): ...\nplugins = [Mine()]\n",
        5,
        "there is no hook on_turn_started: did you mean on_turn_start?",
    ),
    (
        HEAD + "class Mine(Plugin):\n    name = 'two words'\nplugins = [Mine()]\n",
        3,
        "the name of Mine must be 1 to 64 letters, digits, dots, _ and -",
    ),
    (
        HEAD + "class Mine(Plugin):\n    tools = ['dice']\nplugins = [Mine()]\n",
        3,
        "the tools of Mine must be a list of ServerTool",
    ),
    (HEAD + "class Mine(Plugin):\n    tools = 5\nplugins = [Mine()]\n", 3, "the tools of Mine must be a list of ServerTool"),
    (
        HEAD + f"class Mine(Plugin):\n    tools = [{TOOL.format('two words')}]\nplugins = [Mine()]\n",
        4,
        "a tool's name is a letter or _, then up to 63 letters, digits, _ and -: correct the line",
    ),
    (
        HEAD + "class Mine(Plugin): pass\nplugins = [Mine(), Mine()]\n",
        None,
        "there is another plugin named mine: give this one a name of its own",
    ),
    (
        HEAD + f"class Mine(Plugin):\n    tools = [{TOOL.format('dice').replace('roll', 'print')}]\nplugins = [Mine()]\n",
        3,
        "what the tool dice runs must be `async def`",
    ),
    (
        HEAD + f"class Mine(Plugin):\n    tools = [{TOOL.format('dice')}, {TOOL.format('dice')}]\nplugins = [Mine()]\n",
        None,
        "there is another tool named dice: give this one a name of its own",
    ),
]


@pytest.mark.parametrize("source, line, said", WRONG)
def test_what_is_wrong_with_a_file(tmp_path: Path, source: str, line: int | None, said: str | None) -> None:
    path = put(tmp_path, "mine.py", source)
    with pytest.raises(ConfigError) as raised:
        load_plugins([path])
    message = raised.value.message
    assert CANARY not in message
    if said is None:
        assert message.startswith(f"plugins: {path}: it is not")
    else:
        assert message == f"plugins: {path}{f':{line}' if line else ''}: {said}"


def test_a_file_of_somebody_elses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path, "mine.py", GOOD)

    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(ConfigError) as raised:
        load_plugins([path])
    assert raised.value.message == f"plugins: {path}: it cannot be read (Permission denied): let this user read it"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "folder.py").mkdir()
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "large.py").write_bytes(b"#" * (LARGEST + 1))
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00x")
    names = ["missing.py", "folder.py", "pipe.py", "large.py", "binary.py"]
    with pytest.raises(ConfigError) as raised:
        load_plugins([tmp_path / name for name in names])
    lines = raised.value.message.splitlines()
    assert [line.partition(": ")[2].partition(": ")[0].removeprefix(f"{tmp_path}/").partition(":")[0] for line in lines] == names
    assert all("there is no such file" in line for line in lines[:3])
    assert "larger than 1 MiB" in lines[3]
    assert "it is not" in lines[4]


def test_all_files_or_none(tmp_path: Path) -> None:
    good = put(tmp_path, "good.py", GOOD)
    bad = put(tmp_path, "bad.py", "1 / 0\n")
    with pytest.raises(ConfigError) as raised:
        load_plugins([good, bad, tmp_path / "gone.py"])
    assert len(raised.value.message.splitlines()) == 2


def test_a_bad_new_file_leaves_the_old_plugin_as_it_was(tmp_path: Path) -> None:
    path = put(tmp_path, "mine.py", GOOD)
    (old,) = load_plugins([path])
    module = sys.modules[type(old).__module__]
    put(tmp_path, "mine.py", "1 / 0\n")
    with pytest.raises(ConfigError):
        load_plugins([path])
    assert sys.modules[type(old).__module__] is module


def test_names_of_built_in_plugins_are_taken(tmp_path: Path) -> None:
    class Good(Plugin):
        pass

    with pytest.raises(ConfigError, match="another plugin named good"):
        load_plugins([put(tmp_path, "good.py", GOOD)], built_in=[Good()])
