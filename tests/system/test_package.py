"""The package as people get it: built from this clone, installed into a fresh environment, started by its own command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

import mitmproxy
import msgspec
import pytest
from hatchling import build

from tests.rig.client import call
from tests.rig.door import Door
from tests.rig.proxy import ROOT, Mitmdump

pytestmark = pytest.mark.system

LIMIT_S = 300


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheel and sdist, as `pip wheel` and `python -m build` ask the backend for them; each is built in a copy of its own."""
    folder = tmp_path_factory.mktemp("dist")
    clone = tmp_path_factory.mktemp("clone") / "any-name"
    hidden = shutil.ignore_patterns(".*", "__pycache__")
    shutil.copytree(ROOT, clone, ignore=hidden)
    shutil.copy(ROOT / ".gitignore", clone)
    before = Path.cwd()
    os.chdir(clone)
    try:
        build.build_wheel(str(folder))
        build.build_sdist(str(folder))
    finally:
        os.chdir(before)
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    return found


WHICH = "import venv, sys; print(sys.version_info[1])"


def pythons() -> dict[str, str]:
    """Every Python from 3.10 on that is found here."""
    found = {}
    for minor in range(10, 15):
        candidates = [*sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python")), shutil.which(f"python3.{minor}")]
        for candidate in filter(None, candidates):
            ran = subprocess.run([str(candidate), "-c", WHICH], capture_output=True, text=True, check=False)
            if ran.stdout.strip() == str(minor):
                found[f"3.{minor}"] = str(candidate)
                break
    return found


PYTHONS = pythons()
OLD = [name for name in PYTHONS if name == "3.10"]


def environment(folder: Path, python: str) -> Path:
    """Without a pip of its own, which takes longer than all that is done with it."""
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=LIMIT_S, capture_output=True)
    return folder / "bin"


def pip(bin: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "--python", str(bin / "python"), "--disable-pip-version-check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)


def install(bin: Path, what: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return pip(bin, "install", "-q", "--no-index", "--no-deps", *options, str(what))


# ---- what is in it ----


def test_nothing_generic_at_the_top(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        described = Parser().parsestr(packed.read(next(n for n in names if n.endswith("METADATA"))).decode())
    assert {name.partition("/")[0] for name in names} == {"routecodex", f"routecodex-{described['Version']}.dist-info"}
    modules = {path.relative_to(ROOT) for room in ("addons", "routing") for path in (ROOT / room).rglob("*.py")}
    modules.discard(Path("addons/control/package.py"))
    packaged = {Path(name).relative_to("routecodex") for name in names if name.endswith(".py")}
    assert packaged == modules | {Path("__init__.py")}
    assert {"routecodex/py.typed", "routecodex/mitm-config.yaml"} <= set(names)
    assert described["Requires-Python"] == ">=3.11"


def test_the_sdist_is_a_clone(dist: Path, tmp_path: Path) -> None:
    """What is built from it is what is built from the clone."""
    (source,) = dist.glob("*.tar.gz")
    with tarfile.open(source) as packed:
        packed.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    for name in ("README.md", "mitm-config.yaml", "requirements.lock", "addons/routecodex.py", "tests/conftest.py"):
        assert (unpacked / name).is_file(), name
    again = tmp_path / "again"
    again.mkdir()
    code = f"from hatchling import build; build.build_wheel({str(again)!r})"
    subprocess.run([sys.executable, "-c", code], cwd=unpacked, check=True, timeout=LIMIT_S, capture_output=True)
    (one,), (other,) = dist.glob("*.whl"), again.glob("*.whl")
    with zipfile.ZipFile(one) as first, zipfile.ZipFile(other) as second:
        assert {i.filename: i.CRC for i in first.infolist()} == {i.filename: i.CRC for i in second.infolist()}


# ---- installed ----


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment that borrows what we depend on from this one."""
    bin = environment(tmp_path_factory.mktemp("fresh") / "venv", sys.executable)
    done = install(bin, wheel)
    assert done.returncode == 0, done.stderr
    ask = [str(bin / "python"), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip())
    lent = {str(Path(str(module.__file__)).parents[1]) for module in (mitmproxy, msgspec)}
    (site / "borrowed.pth").write_text("\n".join(lent))
    return bin


@pytest.fixture
def door(installed: Path, tmp_path: Path) -> Iterator[Door]:
    with Door(tmp_path, (str(installed / "routecodex"),)) as opened:
        yield opened


def test_the_command_works_from_the_package(door: Door, installed: Path) -> None:
    assert door.run("--version").stdout == "0.1.0\n"
    assert door.ask("<**echo**> hello")["told"] == ["hello"]
    assert "The answer:      hello" in door.run("try").stdout
    config = Path(door.status()["config"])
    assert config.is_relative_to(installed.parent)
    assert config.read_bytes() == (ROOT / "mitm-config.yaml").read_bytes()


def test_a_plugin_finds_its_import_and_its_types(door: Door, installed: Path) -> None:
    own = door.home / ".config" / "routecodex"
    own.mkdir(parents=True)
    (own / "mitm-config.yaml").write_text("virtualrouter: {routing: {default: [echo]}}\nplugins: [shout.py]\n")
    (own / "shout.py").write_text((ROOT / "tests" / "plugins" / "shout.py").read_text())
    assert door.ask("hello")["told"] != ["hello"], "the plugin had nothing to say"
    wrong = door.work / "wrong.py"
    wrong.write_text("from routecodex.routing.plugins import Plugin, UserText\n\nn: int = UserText('x')\nPlugin().no_such()\n")
    command = [sys.executable, "-m", "mypy", "--python-executable", str(installed / "python"), "--strict", str(wrong)]
    said = subprocess.run(command, capture_output=True, text=True, cwd=door.work, timeout=LIMIT_S, check=False).stdout
    assert 'expression has type "UserText", variable has type "int"' in said
    assert '"Plugin" has no attribute "no_such"' in said
    assert "Found 2 errors" in said


def test_mitmdump_takes_the_script_out_of_the_package(installed: Path, tmp_path: Path) -> None:
    (script,) = installed.parent.rglob("routecodex/addons/routecodex.py")
    with Mitmdump(script=script, folder=tmp_path, python=str(installed / "python")) as proxy:
        body = {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": "<**echo**> hello"}]}
        answer = call("https://api.anthropic.com", "/v1/messages", body, proxy=proxy)
        assert answer.json["content"][0]["text"] == "hello"


@pytest.mark.parametrize("name", [name for name in PYTHONS if name not in OLD])
def test_every_python(name: str, wheel: Path, tmp_path: Path) -> None:
    """What needs no proxy needs none of our dependencies either."""
    bin = environment(tmp_path / "venv", PYTHONS[name])
    done = install(bin, wheel, "--no-compile")  # all of it is compiled below
    assert done.returncode == 0, done.stderr
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    for words, code in ((("--help",), 0), (("status", "--json"), 3), (("stop",), 0), (("uninstall",), 0)):
        ran = subprocess.run([str(bin / "routecodex"), *words], capture_output=True, text=True, env=env, timeout=60, check=False)
        assert (ran.returncode, ran.stderr) == (code, "")
    (package,) = (tmp_path / "venv").rglob("site-packages/routecodex")
    command = [str(bin / "python"), "-W", "error", "-m", "compileall", "-q", "-f", str(package)]
    compiled = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert compiled.returncode == 0, compiled.stdout
    subprocess.run([str(bin / "routecodex"), "uninstall", "--purge"], capture_output=True, env=env, timeout=LIMIT_S, check=True)
    assert pip(bin, "uninstall", "-q", "-y", "routecodex").returncode == 0
    assert [path for path in tmp_path.rglob("*") if "routecodex" in path.name.lower()] == []


@pytest.mark.parametrize("name", OLD)
def test_an_old_python_is_named(name: str, wheel: Path, tmp_path: Path) -> None:
    done = install(environment(tmp_path / "venv", PYTHONS[name]), wheel)
    assert done.returncode != 0
    assert "requires a different Python: 3.10" in done.stderr
    for script in ("addons/routecodex.py", "addons/control/__main__.py"):
        ran = subprocess.run([PYTHONS[name], str(ROOT / script)], capture_output=True, text=True, timeout=60, check=False)
        assert ran.returncode == 1
        assert ran.stderr.startswith("RouteCodex needs Python 3.11 or newer; this")
        assert "3.10" in ran.stderr
