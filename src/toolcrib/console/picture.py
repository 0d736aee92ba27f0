"""The token picture of a running gateway: what `toolcrib audit` would say of its servers, without starting them again.

It is made beside the event loop, from lists that no longer change, and kept until a list or the window is another.
"""

import asyncio
from collections.abc import Mapping

from msgspec.structs import replace

from toolcrib.audit.report import Failure, Listed, build_report, report_json
from toolcrib.console.showing import Shades
from toolcrib.crib import Crib
from toolcrib.definitions import JsonObject, Toolset
from toolcrib.settings import RerankerSettings, Settings


class TokenPicture:
    """Makes the picture, one at a time: whoever goes away leaves the one that is being made to the next."""

    def __init__(self, crib: Crib, shades: Shades) -> None:
        self._crib = crib
        self._shades = shades
        self._settings = _for_figures(crib.settings)
        self._made: tuple[tuple[int, int], JsonObject] | None = None
        self._making: asyncio.Task[None] | None = None

    async def show(self, context: int) -> JsonObject:
        """The figures for a window of so many tokens, with the keys of `audit --json`."""
        while self._made is None or self._made[0] != (self._crib.generation, context):
            if self._making is None:
                self._making = asyncio.get_running_loop().create_task(self._make(context))
            await asyncio.shield(self._making)
        return self._made[1]

    async def _make(self, context: int) -> None:
        toolsets, key = self._crib.inventory.toolsets, (self._crib.generation, context)
        try:
            listed = {toolset.name.removeprefix("mcp-"): self._listed(toolset) for toolset in toolsets}
            self._made = (key, await asyncio.to_thread(_figures, listed, context, self._settings))
        finally:
            self._making = None

    def _listed(self, toolset: Toolset) -> Listed:
        if toolset.unavailable is not None and not toolset.tools:
            return Failure(reason=self._shades.text(toolset.unavailable))
        return [tool.definition for tool in toolset.tools]


def _figures(listed: Mapping[str, Listed], context: int, settings: Settings) -> JsonObject:
    return report_json(build_report(listed, context=context, settings=settings))


def _for_figures(settings: Settings) -> Settings:
    """What the gate, the listing and the answers go by; nothing that writes a file, asks an endpoint or holds back."""
    search = replace(settings.tools.tool_search, reranker=RerankerSettings(), semantic="static")
    return Settings(tools=replace(settings.tools, tool_search=search), pins="off", screening="off")
