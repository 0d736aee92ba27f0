"""A session as the tools of an agent of the OpenAI Agents SDK.

```python
agent = Agent(name="worker", tools=function_tools(session))
result = await Runner.run(agent, "Open an issue about the leak.")
```
"""

from typing import TYPE_CHECKING, Any

from agents import FunctionTool

from toolcrib.adapters.bench import Bench, BenchTool
from toolcrib.session import Session

if TYPE_CHECKING:
    from agents.tool_context import ToolContext


def function_tools(session: Session) -> list[FunctionTool]:
    """The session's array. Approvals, hooks and checks are the session's own."""
    bench = Bench(session)
    return [_function_tool(bench, tool) for tool in bench.tools()]


def _function_tool(bench: Bench, tool: BenchTool) -> FunctionTool:
    async def invoke(context: "ToolContext[Any]", arguments: str) -> str:
        return await bench.run(tool.name, arguments, call_id=context.tool_call_id)

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=dict(tool.parameters),
        on_invoke_tool=invoke,
        # Strict schemas would make every optional parameter required.
        strict_json_schema=False,
    )
