"""Google's tools, and the choice among them."""

from __future__ import annotations

from ....values import JsonObject
from ...fields import list_of, object_of, text_of
from ..neutral import Choice, Feature, ServerToolKind, Tool
from .gemini_parts import Others, named
from .gemini_schema import json_schema

_SERVER: dict[str, ServerToolKind] = {
    "googleSearch": "web_search",
    "googleSearchRetrieval": "web_search",
    "enterpriseWebSearch": "web_search",
    "parallelAiSearch": "web_search",
    "exaAiSearch": "web_search",
    "urlContext": "web_fetch",
    "codeExecution": "code_execution",
    "fileSearch": "file_search",
    "retrieval": "file_search",
    "computerUse": "computer",
}
_SCHEMAS = ("parametersJsonSchema", "parameters")
_UNSAID = ("response", "responseJsonSchema", "behavior")
"""Fields of a declaration that no other dialect has a place for."""


def read_tools(given: object, others: Others) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    for entry in [given] if isinstance(given, dict) else list_of(given):
        for key, value in named(entry).items():
            if key == "functionDeclarations":
                tools.extend(_function(named(one), others) for one in list_of(value) if isinstance(one, dict))
            elif value is not None:
                tools.append(Tool(name=key, kind="server", server=_SERVER.get(key, ""), native={key: value}))
    return tuple(tools)


def read_choice(given: object, others: Others) -> Choice | None:
    config = named(given)
    calling = named(config.pop("functionCallingConfig", None))
    others.unread(config, frozenset(), {})
    names = tuple(name for name in map(text_of, list_of(calling.get("allowedFunctionNames"))) if name)
    match text_of(calling.get("mode")).upper():
        case "AUTO":
            return Choice("auto")
        case "VALIDATED":
            others.add(Feature.STRICT, "VALIDATED")
            return Choice("auto", names)
        case "NONE":
            return Choice("none")
        case "ANY":
            return Choice("required", names)
        case _:
            return None


def _function(declared: JsonObject, others: Others) -> Tool:
    schema = next((object_of(declared[name]) for name in _SCHEMAS if declared.get(name)), None)
    name = text_of(declared.get("name"))
    for key in _UNSAID:
        if declared.get(key):
            others.add(Feature.OTHER, f"{key} of {name}")
    return Tool(
        name=name,
        description=text_of(declared.get("description")),
        schema=json_schema(schema) if schema else None,
    )
