"""Tricky conversations, made from a seed: what was meant, apart from any dialect. `as_calls` writes them as clients do.

1. Every text has a core of its own between two marks, so that it can be found again wherever a translation puts it.
2. A conversation holds only what its client's dialect can say: no failed results in Chat, no free text in Gemini.
"""

from __future__ import annotations

import base64
import dataclasses
import random
from dataclasses import dataclass, field
from typing import Any, Literal

from routecodex.routing.values import Dialect

Role = Literal["system", "user", "assistant"]

_WORDS = (
    "中文内容，一个表情 😀👩‍👩‍👧",
    "và tiếng Việt — ok",
    'quotes " and \\ and \\" and \\n',
    "line\nbreak\r\nand\ttab",
    "data: not an event\n\nevent: error\n\n",
    '{"type":"message_stop"} [DONE] "finish_reason":"stop"',
    "</system-reminder> <|im_end|> <think>no</think>",
    "zero\u200bwidth \u202eright-to-left\u202c \x00\x07\x7f",
    "\U0001f1fb\U0001f1f3 e\u0301 \ufeff \ufffd",
    "json of no kind",
    "x" * 300,
    "\u2028\u2029 line separators",
    "half a pair \ud83d and \udc00",
)
_KEYS = ("path", "a b", "ключ", "😀", "", "type", "input", "$ref", "x.y", "arguments")
_PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
_PDF = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"


@dataclass(frozen=True)
class Said:
    text: str
    core: str
    """Empty where nothing must be found again (blank texts)."""


@dataclass(frozen=True)
class Shown:
    kind: Literal["image", "pdf", "plain", "link"]
    data: str
    """Base64; the text itself where it is plain, the address of a picture where it is a link."""
    name: str = ""


@dataclass(frozen=True)
class Thinking:
    text: str
    core: str
    signature: str = ""


@dataclass(frozen=True)
class Use:
    id: str
    name: str
    arguments: Any
    """An object; a text where the tool is custom."""
    number: int
    """Which call of the conversation this is; its result has the same."""
    namespace: str = ""
    custom: bool = False


@dataclass(frozen=True)
class Result:
    id: str
    name: str
    number: int
    parts: tuple[Said | Shown, ...]
    error: bool = False
    custom: bool = False


Part = Said | Shown | Thinking | Use | Result


@dataclass(frozen=True)
class Turn:
    role: Role
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Tool:
    name: str
    description: str
    schema: dict[str, Any]
    namespace: str = ""
    custom: bool = False


@dataclass(frozen=True)
class Settings:
    choice: str = ""
    """`auto`, `none`, `required` or empty."""
    named: tuple[str, ...] = ()
    parallel: bool | None = None
    max_tokens: int | None = 4096
    temperature: float | None = None
    stops: tuple[str, ...] = ()
    seed: int | None = None
    format: dict[str, Any] | None = None
    """A schema; `{}` for any JSON."""
    thinks: bool = False
    stream: bool = True


@dataclass(frozen=True)
class Meant:
    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...] = ()
    settings: Settings = field(default_factory=Settings)

    def until(self, count: int) -> Meant:
        return dataclasses.replace(self, turns=self.turns[:count])

    @property
    def calls(self) -> list[Use]:
        return [part for turn in self.turns for part in turn.parts if isinstance(part, Use)]

    @property
    def results(self) -> list[Result]:
        return [part for turn in self.turns for part in turn.parts if isinstance(part, Result)]


def meant(seed: int, client: Dialect) -> Meant:
    """Always the same for the same seed and dialect."""
    return _Maker(random.Random(f"{seed} {client}"), client).conversation()


class _Maker:
    def __init__(self, random_: random.Random, client: Dialect) -> None:
        self._random = random_
        self._client = client
        self._marks = 0
        self._calls = 0
        self._ids = random_.choice(("plain", "plain", "long", "odd", "uuid", "short", "counted", "none"))
        """What ids look like. `counted`: from the beginning in every answer, as some providers do."""
        self._thinks = random_.random() < 0.4

    def _maybe(self, chance: float) -> bool:
        return self._random.random() < chance

    def conversation(self) -> Meant:
        self._tools = self._some_tools()
        turns: list[Turn] = []
        if self._maybe(0.8):
            turns += [Turn("system", self._texts(most=3)) for _ in range(1 + (self._speaks_openai and self._maybe(0.3)))]
        if self._maybe(0.05):
            turns.append(Turn("assistant", self._texts()))
        for _ in range(self._random.choice((1, 1, 2, 3, 5))):
            turns.append(self._user())
            if self._maybe(0.25) and self._client is not Dialect.GEMINI:
                turns.append(Turn("system", self._texts()))
            for _ in range(self._random.choice((0, 0, 1, 2))):
                turns += self._round()
            if self._maybe(0.7):
                turns.append(Turn("assistant", self._spoken()))
        if turns[-1].role == "assistant" and self._maybe(0.9):
            turns.append(self._user())
        return Meant(tuple(turns), self._tools, self._settings())

    @property
    def _speaks_openai(self) -> bool:
        return self._client in (Dialect.CHAT, Dialect.RESPONSES)

    # Texts and media

    def _core(self) -> str:
        self._marks += 1
        return f"«{self._marks}» {self._random.choice(_WORDS)} «/{self._marks}»"

    def _said(self) -> Said:
        core = self._core()
        if self._maybe(0.15):
            return Said(
                f"{self._random.choice((' ', chr(10), '  ', chr(9)))}{core}{self._random.choice((' ', chr(10) * 2))}", core
            )
        return Said(core, core)

    def _texts(self, most: int = 2) -> tuple[Part, ...]:
        found: list[Part] = [self._said() for _ in range(self._random.randint(1, most))]
        if self._maybe(0.05):
            found.insert(self._random.randrange(len(found) + 1), Said(self._random.choice((" ", "\n\n")), ""))
        return tuple(found)

    def _shown(self) -> Shown:
        self._marks += 1
        kind = self._random.choice(("image", "image", "pdf", "plain", "link"))
        if kind == "plain" and self._client is Dialect.MESSAGES:
            return Shown("plain", self._core().encode("utf-8", "replace").decode(), self._random.choice(("", "notes.txt")))
        if kind == "link":
            return Shown("link", f"https://example.com/{self._marks}-of-{self._random.getrandbits(30)}.png")
        raw = (_PNG if kind == "image" else _PDF) + b"mark %04d" % self._marks
        return Shown("image" if kind == "image" else "pdf", base64.b64encode(raw).decode(), "" if kind == "image" else "a b.pdf")

    def _user(self) -> Turn:
        parts: list[Part] = list(self._texts())
        if self._maybe(0.25):
            parts.insert(self._random.randrange(len(parts) + 1), self._shown())
        return Turn("user", tuple(parts))

    def _spoken(self) -> tuple[Part, ...]:
        thinking: list[Part] = []
        if self._thinks and self._maybe(0.7):
            core = self._core()
            thinking = [Thinking(core, core, "EuYB" + "QUJD" * self._random.randint(1, 9) if self._maybe(0.8) else "")]
        return (*thinking, *self._texts())

    # Tools

    def _some_tools(self) -> tuple[Tool, ...]:
        if self._maybe(0.1):
            return ()
        names = ["Bash", "read_file", "mcp__server__do-it", "exec", "x", "T" * 60 + "one", "T" * 60 + "two", "search-2"]
        if self._client is Dialect.MESSAGES:
            names += ["L" * 120 + "a", "L" * 120 + "b"]
        if self._client is Dialect.GEMINI:
            names += ["a.b:c", "server.tool-1", "a.b", "a-b", "ab"]
        found = []
        for name in self._random.sample(names, self._random.randint(1, 5)):
            namespace = self._random.choice(("", "", "mcp__crm__", "web")) if self._client is Dialect.RESPONSES else ""
            custom = self._speaks_openai and not namespace and self._maybe(0.2)
            found.append(Tool(name, self._core(), {} if custom else self._schema(), namespace, custom))
        if self._client is Dialect.RESPONSES and self._maybe(0.2):
            found += [Tool("same", self._core(), self._schema(), space) for space in ("one__", "two__")]
        return tuple(found)

    def _schema(self) -> dict[str, Any]:
        properties: dict[str, Any] = {
            "path": {"type": "string", "description": "where"},
            "kind": {"enum": ["a", "b"]},
            "many": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": ["integer", "null"]}}}},
            "either": {"anyOf": [{"type": "string"}, {"type": "number", "minimum": 0}]},
            "self": {"$ref": "#/$defs/node"},
            "fixed": {"const": 7},
        }
        chosen = {name: properties[name] for name in self._random.sample(list(properties), self._random.randint(0, 4))}
        schema: dict[str, Any] = {"type": "object", "properties": chosen, "required": list(chosen)[:1]}
        if "self" in chosen:
            schema["$defs"] = {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}}
        return schema | ({"additionalProperties": False} if self._maybe(0.3) else {})

    def _id(self, place: int) -> str:
        number = self._calls
        match self._ids:
            case "none":
                return "" if self._client in (Dialect.CHAT, Dialect.GEMINI) else f"c{number}"
            case "counted":
                return f"call_{place}"
            case "long":
                return f"call_{'z' * 90}{number}"
            case "odd":
                return f"{self._random.choice(('функция.', 'a b/', 'id:|', '😀', 'x' * 39 + '.'))}{number}"
            case "uuid":
                return f"{self._random.getrandbits(128):032x}"
            case "short":
                return f"{number}"
            case _:
                return f"{'toolu_01' if self._client is Dialect.MESSAGES else 'call_'}{self._random.getrandbits(90):024x}"

    def _arguments(self, depth: int = 0) -> dict[str, Any]:
        keys = self._random.sample(_KEYS, self._random.choice((0, 1, 1, 2, 4)))
        return {key: self._value(depth + 1) for key in keys}

    def _value(self, depth: int) -> Any:
        match self._random.randrange(10 if depth < 4 else 8):
            case 0:
                return self._random.choice((True, False, None))
            case 1:
                return self._random.choice((0, -1, 7, 2**53 + 1, -(2**63), 2**64 - 1, 2**70))
            case 2:
                return self._random.choice((0.5, 1e-7, -2.75, 1e21))
            case 8:
                return [self._value(depth + 1) for _ in range(self._random.randrange(4))]
            case 9:
                return self._arguments(depth)
            case _:
                return self._random.choice((*_WORDS, ""))

    def _use(self, place: int) -> Use:
        self._calls += 1
        if self._tools and self._maybe(0.93):
            tool = self._random.choice(self._tools)
        else:
            tool = Tool(self._random.choice(("gone", "Undeclared_2")), "", {})
        arguments = self._random.choice(_WORDS) if tool.custom else self._arguments()
        return Use(self._id(place), tool.name, arguments, self._calls, tool.namespace, tool.custom)

    def _round(self) -> list[Turn]:
        """The assistant calls tools, and the user's side answers."""
        uses = [self._use(place) for place in range(self._random.choice((1, 1, 1, 2, 3, 5)))]
        spoken = self._spoken() if self._maybe(0.5) else ()
        lost = 0 if self._ids in ("none", "counted") else 0.04  # such ids alone do not say which of them has none
        results = [self._result(use) for use in uses if not self._maybe(lost)]
        if self._ids != "none" and self._maybe(0.3):
            self._random.shuffle(results)
        between = [Turn("system", self._texts())] if self._client is Dialect.RESPONSES and self._maybe(0.05) else []
        typed: tuple[Part, ...] = self._texts() if self._maybe(0.2) else ()
        answer = [Turn("user", (*results, *typed))] if results or typed else [self._user()]
        return [Turn("assistant", (*spoken, *uses)), *between, *answer]

    def _result(self, use: Use) -> Result:
        parts: list[Said | Shown] = [self._said() for _ in range(self._random.choice((0, 1, 1, 1, 2)))]
        if self._maybe(0.2):
            parts.append(self._shown())
        if self._client is Dialect.GEMINI:  # one text, and media beside it
            parts = [*[one for one in parts if isinstance(one, Said)][:1], *[one for one in parts if isinstance(one, Shown)]]
        failing = self._client is Dialect.MESSAGES or (
            self._client is Dialect.GEMINI and isinstance(next(iter(parts), None), Said)
        )
        error = failing and self._maybe(0.2)
        return Result(use.id, use.name, use.number, tuple(parts), error, use.custom)

    # What is wanted

    def _settings(self) -> Settings:
        choice = self._random.choice(("", "", "auto", "none", "required", "named")) if self._tools else ""
        named: tuple[str, ...] = ()
        if choice == "named":
            several = self._client is not Dialect.MESSAGES and self._maybe(0.4)
            names = list(dict.fromkeys(tool.name for tool in self._tools))
            choice, named = "required", tuple(self._random.sample(names, min(len(names), 2 if several else 1)))
        stops = ("STOP", "\n\nHuman:", "三", "</end>", "five", "six")
        given = 0 if self._client is Dialect.RESPONSES else self._random.choice((0, 0, 1, 4, 6))
        gemini = self._client is Dialect.GEMINI
        return Settings(
            choice,
            named,
            parallel=self._random.choice((None, None, True, False)) if not gemini and self._tools else None,
            max_tokens=self._random.choice((16, 4096, 50_000)) if self._client is Dialect.MESSAGES or self._maybe(0.6) else None,
            temperature=self._random.choice((None, None, 0.0, 0.7, 1.0)),
            stops=stops[: min(given, 4) if self._client is Dialect.CHAT else given],
            seed=7 if self._client in (Dialect.CHAT, Dialect.GEMINI) and self._maybe(0.2) else None,
            format=self._random.choice(
                (None, None, None, None, _ANSWER, {} if self._client is not Dialect.MESSAGES else _ANSWER)
            ),
            thinks=self._thinks,
            stream=self._maybe(0.7),
        )


_ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {"answer_in_full": {"type": "string"}},
    "required": ["answer_in_full"],
    "additionalProperties": False,
}
