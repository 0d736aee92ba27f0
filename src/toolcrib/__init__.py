"""Toolcrib: thousands of tools for the price of three."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.activity import Activity, Event, JsonlSink
    from toolcrib.assembly import Turn
    from toolcrib.config import load_settings
    from toolcrib.crib import Crib
    from toolcrib.definitions import Call, Result, Tool, Toolset, Traits
    from toolcrib.errors import CallError, ConfigError, ToolcribError
    from toolcrib.execution.approval import ApprovalRequest
    from toolcrib.gate import GateDecision
    from toolcrib.session import Answer, Session
    from toolcrib.settings import Settings
    from toolcrib.sources.base import Source
    from toolcrib.sources.functions import Bounds, Functions
    from toolcrib.sources.live import LiveDefinitions

_HOMES = {
    "Activity": "activity", "Answer": "session", "ApprovalRequest": "execution.approval", "Bounds": "sources.functions",
    "Call": "definitions", "CallError": "errors", "ConfigError": "errors", "Crib": "crib", "Event": "activity",
    "Functions": "sources.functions", "GateDecision": "gate", "JsonlSink": "activity",
    "LiveDefinitions": "sources.live", "Result": "definitions", "Session": "session", "Settings": "settings",
    "Source": "sources.base", "Tool": "definitions", "ToolcribError": "errors", "Toolset": "definitions",
    "Traits": "definitions", "Turn": "assembly", "load_settings": "config",
}  # fmt: skip

__all__ = [
    "Activity", "Answer", "ApprovalRequest", "Bounds", "Call", "CallError", "ConfigError", "Crib", "Event", "Functions",
    "GateDecision", "JsonlSink", "LiveDefinitions", "Result", "Session", "Settings", "Source", "Tool", "ToolcribError",
    "Toolset", "Traits", "Turn", "load_settings",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Public names are resolved when they are first used, so that importing the package costs nothing."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'toolcrib' has no attribute {name!r}")
    return getattr(import_module(f"toolcrib.{home}"), name)
