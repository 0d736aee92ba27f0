"""A session as a toolset of Pydantic AI.

```python
agent = Agent("openai:gpt-5.4", toolsets=[CribToolset(session)])
result = await agent.run("Open an issue about the leak.")
```
"""

from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from toolcrib.adapters.bench import Bench
from toolcrib.session import Session

_ANYTHING = SchemaValidator(core_schema.any_schema())
"""The session checks arguments itself, against the real tool."""


class CribToolset(AbstractToolset[Any]):
    """The array of a session; the same in every step of every run."""

    def __init__(self, session: Session, *, id: str | None = None) -> None:
        self._bench = Bench(session)
        self._id = id

    @property
    def id(self) -> str | None:
        """The name of the toolset."""
        return self._id

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """The array."""
        return {
            tool.name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=tool.name,
                    description=tool.description,
                    parameters_json_schema=dict(tool.parameters),
                    strict=False,
                    sequential=not tool.parallel,
                ),
                max_retries=0,
                args_validator=_ANYTHING,
            )
            for tool in self._bench.tools()
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> str:
        """Runs a call; refusals are answers that the model can act on."""
        return await self._bench.run(name, tool_args, call_id=ctx.tool_call_id)
