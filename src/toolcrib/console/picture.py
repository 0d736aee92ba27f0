"""The token picture of a running gateway: what `toolcrib audit` would say of its servers, without starting them again.

It is made beside the event loop, from lists that no longer change, and kept until a list or the window is another.
"""

import asyncio
from collections.abc import Sequence

from msgspec.structs import replace

from toolcrib.audit.report import Failure, Listed, build_report, report_json
from toolcrib.crib import Crib
from toolcrib.definitions import JsonObject, Toolset
from toolcrib.settings import RerankerSettings, Settings


class TokenPicture:
    """Makes the picture, one at a time."""

    def __init__(self, crib: Crib) -> None:
        self._crib = crib
        self._settings = _for_figures(crib.settings)
        self._made: tuple[tuple[int, int], JsonObject] | None = None
        self._making = asyncio.Lock()

    async def show(self, context: int) -> JsonObject:
        """The figures for a window of so many tokens, with the keys of `audit --json`."""
        async with self._making:
            toolsets = self._crib.inventory.toolsets
            key = (self._crib.generation, context)
            if self._made is None or self._made[0] != key:
                self._made = (key, await asyncio.to_thread(_figures, toolsets, context, self._settings))
            return self._made[1]


def _figures(toolsets: Sequence[Toolset], context: int, settings: Settings) -> JsonObject:
    listed: dict[str, Listed] = {}
    for toolset in toolsets:
        unknown = toolset.unavailable is not None and not toolset.tools
        definitions = [tool.definition for tool in toolset.tools]
        listed[toolset.name.removeprefix("mcp-")] = Failure(reason=f"{toolset.unavailable}") if unknown else definitions
    return report_json(build_report(listed, context=context, settings=settings))


def _for_figures(settings: Settings) -> Settings:
    """What the gate, the listing and the answers go by; nothing that writes a file, asks an endpoint or holds back."""
    search = replace(settings.tools.tool_search, reranker=RerankerSettings(), semantic="static")
    return Settings(tools=replace(settings.tools, tool_search=search), pins="off", screening="off")
