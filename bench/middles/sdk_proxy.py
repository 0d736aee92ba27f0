"""A proxy on the typed path of the official SDK: `python sdk_proxy.py stdio|PORT COMMAND ...`."""

import socket
import sys

import anyio
import mcp_types as types
import uvicorn
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

Context = ServerRequestContext[object, object]


async def main() -> None:
    parameters = StdioServerParameters(command=sys.argv[2], args=sys.argv[3:])
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()

        async def list_tools(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
            return await session.list_tools()

        async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
            return await session.call_tool(params.name, params.arguments)

        server = Server("sdk-proxy", on_list_tools=list_tools, on_call_tool=call_tool)
        if sys.argv[1] == "stdio":
            async with stdio_server() as (ours, theirs):
                await server.run(ours, theirs, server.create_initialization_options())
        else:
            app = server.streamable_http_app(host="127.0.0.1", json_response=True)
            listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
            await uvicorn.Server(uvicorn.Config(app, log_level="error")).serve(sockets=[listener])


if __name__ == "__main__":
    anyio.run(main)
