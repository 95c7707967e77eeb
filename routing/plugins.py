"""What a plugin imports: `from routecodex.routing.plugins import Plugin, …`. The contract itself stands in `turn/plugins.py`.

These names stay, whatever moves behind them.
"""

from .turn.plugins import (
    STOP_FOLLOWUP,
    AfterRequest,
    Appendable,
    Appended,
    Appending,
    CleanUp,
    CurrentMessage,
    Plugin,
    PluginFailed,
    Refused,
    Request,
    Said,
    ServerTool,
    StreamData,
    ToolFailed,
    ToolOutcome,
    ToolResults,
    TurnInfo,
    UserText,
)
from .values import Call, Caller, Dialect, JsonObject, Kind, Target

__all__ = [
    "STOP_FOLLOWUP",
    "AfterRequest",
    "Appendable",
    "Appended",
    "Appending",
    "Call",
    "Caller",
    "CleanUp",
    "CurrentMessage",
    "Dialect",
    "JsonObject",
    "Kind",
    "Plugin",
    "PluginFailed",
    "Refused",
    "Request",
    "Said",
    "ServerTool",
    "StreamData",
    "Target",
    "ToolFailed",
    "ToolOutcome",
    "ToolResults",
    "TurnInfo",
    "UserText",
]
