"""A session as LangChain tools, for `create_agent` and every graph of LangGraph that takes tools.

```python
agent = create_agent(model, tools=langchain_tools(session))
state = await agent.ainvoke({"messages": [("user", "Open an issue about the leak.")]})
```
"""

from typing import Any

from langchain_core.tools import StructuredTool

from toolcrib.adapters.bench import Bench, BenchTool
from toolcrib.session import Session


def langchain_tools(session: Session) -> list[StructuredTool]:
    """The session's array. Tools are asynchronous: use `ainvoke`."""
    bench = Bench(session)
    return [_structured_tool(bench, tool) for tool in bench.tools()]


def _structured_tool(bench: Bench, tool: BenchTool) -> StructuredTool:
    async def invoke(**arguments: Any) -> str:
        return await bench.run(tool.name, arguments)

    return StructuredTool.from_function(
        coroutine=invoke, name=tool.name, description=tool.description, args_schema=dict(tool.parameters)
    )
