"""Which plugins take part in a turn, and in what.

For plugins of the house, which never change, it is worked out once; a person's own may look different in every turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from .blame import blame
from .plugins import HOOKS, Plugin, TurnInfo, overrides
from .tools import ServerTool

Warn = Callable[[str], None]
"""Hears one line about what went wrong in a plugin."""

_MANY = 16
"""So few combinations of the house's plugins take part; after a new configuration theirs are others."""


class Roster(Struct, frozen=True):
    plugins: tuple[Plugin, ...]
    hooked: Mapping[str, tuple[Plugin, ...]]
    """Hook → who listens to it."""
    at_once: bool
    """Every stage may be begun anywhere, without a task of its own."""
    order: Mapping[int, int]
    """`id` of a plugin → its place."""
    tools: Mapping[str, tuple[Plugin, ServerTool]]


_known: dict[tuple[int, ...], Roster] = {}
"""By the plugins' `id`, which is nobody else's as long as their roster holds them."""


def takers(plugins: Sequence[Plugin], turn: TurnInfo, warn: Warn = lambda line: None) -> tuple[Plugin, ...]:
    """The plugins that take part in this turn. One that cannot even say so does not."""
    found = []
    for plugin in plugins:
        try:
            if plugin.wants(turn):
                found.append(plugin)
        except (Exception, SystemExit) as error:
            warn(blame(plugin, "wants", error).args[0])
    return tuple(found)


def roster_of(plugins: Sequence[Plugin]) -> Roster:
    names = tuple(map(id, plugins))
    known = _known.get(names)
    if known is None:
        known = _sorted(tuple(plugins))
        if all(plugin.at_once or plugin.same_hooks for plugin in plugins):
            if len(_known) >= _MANY:
                _known.clear()
            _known[names] = known
    return known


def _sorted(plugins: tuple[Plugin, ...]) -> Roster:
    tools: dict[str, tuple[Plugin, ServerTool]] = {}
    for plugin in plugins:
        for tool in plugin.tools:
            tools.setdefault(tool.name, (plugin, tool))
    return Roster(
        plugins,
        {hook: tuple(plugin for plugin in plugins if overrides(plugin, hook)) for hook in HOOKS},
        all(plugin.at_once for plugin in plugins),
        {id(plugin): place for place, plugin in enumerate(plugins)},
        tools,
    )
