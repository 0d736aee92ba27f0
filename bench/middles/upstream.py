"""A small MCP server on standard input and output: `python upstream.py [TOOLS] [SECONDS]`.

It has one tool that repeats a message, or that one and made-up ones; it may take its time to start.
"""

import json
import sys
import time
from pathlib import Path


def main() -> None:
    out = sys.stdout.buffer
    tools = _tools(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    time.sleep(float(sys.argv[2]) if len(sys.argv) > 2 else 0)
    for line in sys.stdin.buffer:
        message = json.loads(line)
        key, method = message.get("id"), message.get("method")
        if key is None:
            continue
        answer = {"jsonrpc": "2.0", "id": key}
        if method == "tools/call":
            answer["result"] = {"content": [{"type": "text", "text": message["params"]["arguments"]["message"]}]}
        elif method == "tools/list":
            answer["result"] = {"tools": tools}
        elif method == "initialize":
            info = {"name": "upstream", "version": "1"}
            answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        elif method == "ping":
            answer["result"] = {}
        else:
            answer["error"] = {"code": -32601, "message": "There is no such method."}
        out.write(json.dumps(answer).encode() + b"\n")
        out.flush()


def _tools(count: int) -> list[dict[str, object]]:
    schema = {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}
    tools: list[dict[str, object]] = [{"name": "echo", "description": "Repeats a message.", "inputSchema": schema}]
    if count > 1:
        sys.path.insert(0, str(Path(__file__).parents[2]))
        from bench.catalogs import definitions

        for raw in definitions(count - 1):
            function = raw["function"]
            assert isinstance(function, dict)
            tools.append(
                {
                    "name": function["name"],
                    "description": function["description"],
                    "inputSchema": function["parameters"],
                }
            )
    return tools


if __name__ == "__main__":
    main()
