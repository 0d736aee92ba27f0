"""A host in another language: a session over standard input and output, one JSON object a line."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from workshop import require

CONFIG = """
tools: {tool_search: {enabled: on}}
python:
  math: {module: math, include: [gcd, hypot, comb, perm, isqrt, floor, ceil]}
  text: {module: textwrap}
"""

GIVEN = {"integers": [84, 36]}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "toolcrib.yaml"
        config.write_text(CONFIG, encoding="utf-8")
        call = {
            "id": "1",
            "type": "function",
            "function": {
                "name": "tool_call",
                "arguments": '{"name": "math__gcd", "arguments": {"integers": [84, 36]}}',
            },
        }
        lines = [
            {"id": 1, "op": "tools", "dialect": "openai_chat"},
            {"id": 2, "op": "execute", "calls": [call]},
            {"id": 3, "op": "nonsense"},
        ]
        done = subprocess.run(  # noqa: S603 - our own module
            [sys.executable, "-m", "toolcrib.adapters.json_lines", "--config", str(config)],
            input="".join(json.dumps(line) + "\n" for line in lines),
            capture_output=True,
            text=True,
            check=True,
        )
    tools, executed, wrong = (json.loads(line) for line in done.stdout.splitlines())
    names = [tool["function"]["name"] for tool in tools["tools"]]
    require(names == ["tool_search", "tool_describe", "tool_call"], f"three tools stand for all: {names}")
    require(executed["messages"] == [{"role": "tool", "tool_call_id": "1", "content": "12"}], f"it ran: {executed}")
    require(executed["results"][0]["tool"] == "math__gcd", "the real tool is named")
    require(wrong["code"] == "config_invalid", f"a wrong line is answered: {wrong}")
    print(f"answers over a pipe: {executed['messages'][0]['content']}")


if __name__ == "__main__":
    main()
