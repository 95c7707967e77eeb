"""Plugin files of the configuration: from paths to plugins, or to one message that says for each file what to do about it.

1. All files are loaded, or none is in force: a bad one gives a ConfigError.
2. A file is loaded from where it lies, every time anew; its folder is on the search path only meanwhile.
3. A message holds the file, the line and the error's type. An error's own text is repeated only where it cannot hold more than
   names of modules and of objects.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType

from ..errors import ConfigError, RouteCodexError
from .plugins import HOOKS, Plugin
from .tools import ServerTool

LARGEST = 1 << 20
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_ASYNC = frozenset(hook for hook in HOOKS if inspect.iscoroutinefunction(getattr(Plugin, hook)))
_SPEAKING = (ImportError, NameError, AttributeError, SyntaxError)
_END_WITH = "end the file with: plugins = [{}()]"


class _Wrong(Exception):
    """What is wrong with a file, and at which line (0: as a whole)."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line
        self.text = text


def load_plugins(files: Sequence[str | Path], *, built_in: Sequence[Plugin] = ()) -> tuple[Plugin, ...]:
    """The plugins of these files, in the order of the files and in each file's own. Names of `built_in` ones are taken."""
    found: list[Plugin] = []
    problems: list[str] = []
    names = {name for plugin in built_in for name in _names_of(plugin)}
    for file in files:
        path = Path(file).absolute()
        try:
            for plugin in _load(path):
                _claim(plugin, names)
                found.append(plugin)
        except _Wrong as wrong:
            where = f"{path}:{wrong.line}" if wrong.line else str(path)
            problems.append(f"plugins: {where}: {wrong.text}")
    if problems:
        raise ConfigError("\n".join(problems))
    return tuple(found)


# One file


def _load(path: Path) -> list[Plugin]:
    source = _read(path)
    tree = _parse(source, path)
    module = _run(path, source)
    listed = getattr(module, "plugins", None)
    if listed is None:
        own = [cls.__name__ for cls in vars(module).values() if _is_plugin_of(cls, module)]
        raise _Wrong(0, f"it names no plugins: {_END_WITH.format(own[0] if own else 'YourPlugin')}")
    line = _line_of(tree, "plugins")
    if not isinstance(listed, list | tuple) or not listed:
        raise _Wrong(line, "`plugins` must be a list of plugins, such as [YourPlugin()]")
    for plugin in listed:
        if inspect.isclass(plugin) and issubclass(plugin, Plugin):
            raise _Wrong(line, f"`plugins` holds the class {plugin.__name__}: write {plugin.__name__}()")
        if not isinstance(plugin, Plugin):
            raise _Wrong(line, f"`plugins` holds an object of the class {type(plugin).__name__}, which is no Plugin")
        _check(plugin, _line_of(tree, type(plugin).__name__))
    return list(listed)


def _read(path: Path) -> bytes:
    if not path.is_file():
        raise _Wrong(0, "there is no such file: correct the path, which counts from the configuration's folder, or take it out")
    try:
        with path.open("rb") as file:
            source = file.read(LARGEST + 1)
    except OSError as error:
        raise _Wrong(0, f"it cannot be read ({error.strerror or 'unknown reason'}): let this user read it") from None
    if len(source) > LARGEST:
        raise _Wrong(0, "it is larger than 1 MiB: name the plugin's own file")
    return source


def _parse(source: bytes, path: Path) -> ast.Module:
    try:
        return ast.parse(source, str(path))
    except SyntaxError as error:
        raise _Wrong(error.lineno or 0, f"it is not valid Python ({error.msg}): correct the line") from None
    except (ValueError, RecursionError, MemoryError):
        raise _Wrong(0, "it is not Python text") from None


def _run(path: Path, source: bytes) -> ModuleType:
    """No compiled copy is kept: one second after a change an old copy would still pass for the new file."""
    module = ModuleType(f"routecodex_plugin_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}_{path.stem}")
    module.__file__ = str(path)
    before = sys.modules.get(module.__name__)
    sys.modules[module.__name__] = module  # dataclasses and the like look for it there
    try:
        with _searched(path.parent):
            exec(compile(source, str(path), "exec", dont_inherit=True), vars(module))
    except (Exception, SystemExit) as error:
        if before is None:
            del sys.modules[module.__name__]
        else:
            sys.modules[module.__name__] = before
        raise _Wrong(_line_in(error, path), _said_of(error)) from None
    return module


@contextmanager
def _searched(folder: Path) -> Iterator[None]:
    """Modules beside the plugin can be imported while it loads; behind all others, so that they hide none."""
    entry = str(folder)
    added = entry not in sys.path
    if added:
        sys.path.append(entry)
    try:
        yield
    finally:
        if added and entry in sys.path:
            sys.path.remove(entry)


def _said_of(error: BaseException) -> str:
    name = type(error).__name__
    said = f"{name}: {error}" if isinstance(error, _SPEAKING) else name
    match error:
        case RouteCodexError():
            return f"{error.message}: correct the line"
        case ModuleNotFoundError():
            return f"{said}: install it into the proxy's own Python, or put it beside the plugin"
        case SystemExit():
            return f"{said} while it was loaded: a plugin must not end the proxy"
        case _:
            return f"{said} while it was loaded: correct the line"


def _line_in(error: BaseException, path: Path) -> int:
    """Of the plugin's own file, however deep the error arose."""
    line, where = 0, error.__traceback__
    while where is not None:
        if where.tb_frame.f_code.co_filename == str(path):
            line = where.tb_lineno
        where = where.tb_next
    return line


def _line_of(tree: ast.Module, name: str) -> int:
    """Where this class is made, or the module sets this name last; 0 where neither is written down."""
    line = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == name:
            line = node.lineno
    for statement in tree.body:
        targets: list[ast.expr] = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign | ast.AugAssign):
            targets = [statement.target]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            line = statement.lineno
    return line


def _is_plugin_of(cls: object, module: ModuleType) -> bool:
    return inspect.isclass(cls) and issubclass(cls, Plugin) and cls.__module__ == module.__name__


# One plugin


def _check(plugin: Plugin, line: int) -> None:
    kind = type(plugin).__name__
    if not isinstance(plugin.name, str) or _NAME.fullmatch(plugin.name) is None:
        raise _Wrong(line, f"the name of {kind} must be 1 to 64 letters, digits, dots, _ and -")
    own = {name for cls in type(plugin).__mro__[: type(plugin).__mro__.index(Plugin)] for name in vars(cls)}
    for name in sorted(own):
        if name.startswith("on_") and name not in HOOKS:
            near = get_close_matches(name, HOOKS, n=1, cutoff=0.0)
            raise _Wrong(_code_line(plugin, name) or line, f"there is no hook {name}: did you mean {near[0]}?")
    for hook in HOOKS:
        _check_hook(plugin, hook, line)
    if not isinstance(plugin.tools, list | tuple) or not all(isinstance(tool, ServerTool) for tool in plugin.tools):
        raise _Wrong(line, f"the tools of {kind} must be a list of ServerTool")
    for tool in plugin.tools:
        if not inspect.iscoroutinefunction(tool.run):
            raise _Wrong(line, f"what the tool {tool.name} runs must be `async def`")


def _check_hook(plugin: Plugin, hook: str, line: int) -> None:
    written, standard = getattr(plugin, hook), getattr(Plugin, hook)
    line = _code_line(plugin, hook) or line
    if hook in _ASYNC and not inspect.iscoroutinefunction(written):
        raise _Wrong(line, f"{hook} must be `async def`")
    if hook not in _ASYNC and inspect.iscoroutinefunction(written):
        raise _Wrong(line, f"{hook} must be a plain `def`: it is called while an answer streams")
    wanted = list(inspect.signature(standard).parameters)
    try:
        inspect.signature(written).bind(*wanted[1:])
    except (TypeError, ValueError):
        raise _Wrong(line, f"{hook} must be written {hook}({', '.join(wanted)})") from None


def _code_line(plugin: Plugin, name: str) -> int:
    code = getattr(getattr(type(plugin), name, None), "__code__", None)
    return int(code.co_firstlineno) if code is not None else 0


def _names_of(plugin: Plugin) -> list[str]:
    """A tool may be named like a plugin, but not like another tool."""
    return [f"plugin named {plugin.name}", *(f"tool named {tool.name}" for tool in plugin.tools)]


def _claim(plugin: Plugin, names: set[str]) -> None:
    for name in _names_of(plugin):
        if name in names:
            raise _Wrong(0, f"there is another {name}: give this one a name of its own")
        names.add(name)
