"""A session over standard input and output, for hosts in other languages: one JSON object a line.

    {"id": 1, "op": "tools", "dialect": "openai_chat"}      → {"id": 1, "tools": [...], "notice": null, ...}
    {"id": 2, "op": "execute", "calls": [...]}              → {"id": 2, "messages": [...], "results": [...]}
    {"id": 3, "op": "begin_turn"}                           → {"id": 3}
    {"id": 4, "op": "search", "query": "open an issue"}     → {"id": 4, "answer": {...}}

Started with `python -m toolcrib.adapters.json_lines --config toolcrib.yaml`. Nothing but answers is ever written to
standard output; a line that cannot be used is answered with an `error` and its `code`.
"""

import argparse
import asyncio
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, cast

import orjson

from toolcrib.adapters.turns import Turns
from toolcrib.crib import Crib
from toolcrib.definitions import DialectName, Json, JsonObject
from toolcrib.errors import CallError, ConfigError, ToolcribError
from toolcrib.limits import AGENT_STARTUP_WAIT_S, JSON_LINE_MAX_BYTES
from toolcrib.session import Answer, Session


class JsonLines:
    """Answers the lines of one host."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._turns: dict[str, Turns] = {}

    async def answer(self, line: bytes) -> JsonObject:
        """The answer to one line; never raises for what the line says."""
        identifier: Json = None
        try:
            request = _read(line)
            given = request.get("id")
            # What is nested may be nested too deeply to be written again.
            identifier = given if isinstance(given, str | int | float) else None
            return {"id": identifier, **await self._run(request)}
        except CallError as error:
            return {"id": identifier, **error.for_model()}
        except ToolcribError as error:
            return {"id": identifier, "error": str(error), "code": error.code}

    async def _run(self, request: JsonObject) -> JsonObject:
        match request.get("op"):
            case "tools":
                return self._tools(str(request.get("dialect", "openai_chat")))
            case "execute":
                return await self._execute(request)
            case "begin_turn":
                self._session.begin_turn()
                return {}
            case "search":
                return {"answer": self._session.search(str(request.get("query", ""))).body}
            case other:
                raise ConfigError(f"There is no op `{other}`: use tools, execute, begin_turn or search.")

    def _tools(self, dialect: str) -> JsonObject:
        name = cast("DialectName", dialect)
        turns = self._turns.setdefault(dialect, Turns(self._session, dialect=name))
        turn, notice = turns.next()
        return {
            "tools": cast("Json", turn.tools),
            "notice": notice,
            "activated": turn.activated,
            "decision": str(turn.decision),
        }

    async def _execute(self, request: JsonObject) -> JsonObject:
        calls = request.get("calls")
        if not isinstance(calls, list):
            raise ConfigError("`calls` must be an array of the model's calls.")
        mode = "sequential" if request.get("mode") == "sequential" else "parallel"
        answers = await self._session.execute(calls, mode=mode)
        return {
            "messages": cast("Json", [answer.message for answer in answers]),
            "results": cast("Json", [_result(answer) for answer in answers]),
        }


def _result(answer: Answer) -> JsonObject:
    return {
        "call_id": answer.call.id,
        "tool": answer.tool.name if answer.tool else None,
        "toolset": answer.tool.toolset if answer.tool else None,
        "text": answer.result.text,
        "is_error": answer.result.is_error,
        "code": answer.result.code,
    }


def _read(line: bytes) -> JsonObject:
    if len(line) > JSON_LINE_MAX_BYTES:
        raise ConfigError(f"A line has at most {JSON_LINE_MAX_BYTES} bytes.")
    try:
        request: Json = cast("Json", orjson.loads(line))
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"The line is no valid JSON: {error}.") from None
    if not isinstance(request, dict):
        raise ConfigError("A line must hold a JSON object.")
    return request


async def serve(session: Session, lines: BinaryIO, out: BinaryIO) -> None:
    """Answers line by line until the input ends."""
    host = JsonLines(session)
    while True:
        line = await asyncio.to_thread(lines.readline, JSON_LINE_MAX_BYTES + 1)
        if not line:
            return
        if len(line) > JSON_LINE_MAX_BYTES:
            # The rest of an endless line is skipped, so that the next one is read from its beginning.
            while line and not line.endswith(b"\n"):
                line = await asyncio.to_thread(lines.readline, JSON_LINE_MAX_BYTES)
            answer: JsonObject = {"id": None, "error": "The line is too long.", "code": "config_invalid"}
        elif not line.strip():
            continue
        else:
            answer = await host.answer(line)
        out.write(orjson.dumps(answer, default=str) + b"\n")
        out.flush()


def main(arguments: Iterable[str] | None = None) -> int:
    """Serves the sources of a configuration file."""
    parser = argparse.ArgumentParser(description="A Toolcrib session over standard input and output.")
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--context", type=int, default=None, help="context window of the model, in tokens")
    parser.add_argument("--enabled-toolsets", default=None, help="the only toolsets, separated by commas")
    options = parser.parse_args(None if arguments is None else list(arguments))

    async def run() -> None:
        async with Crib.from_config(options.config) as crib:
            await crib.settle(wait_s=AGENT_STARTUP_WAIT_S)
            enabled = options.enabled_toolsets.split(",") if options.enabled_toolsets else None
            session = crib.session(model_context=options.context, enabled_toolsets=enabled)
            await serve(session, sys.stdin.buffer, sys.stdout.buffer)

    try:
        asyncio.run(run())
    except ToolcribError as error:
        sys.stderr.write(f"toolcrib: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
