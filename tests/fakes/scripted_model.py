"""A model endpoint that follows a script: a real HTTP server on loopback that speaks three wire formats.

It answers OpenAI chat completions, OpenAI Responses and Anthropic messages, whole or as a stream, keeps every request
byte for byte, and refuses with a 400 what the real APIs are known to refuse. It never looks at what it was asked: a
test decides what the model says, and reads what the host sent.

By hand: `python -m tests.fakes.scripted_model --script script.json --port 8099`, with steps such as
`[{"call": [{"name": "tool_search", "arguments": {"query": "open an issue"}}]}, {"say": "Done."}]`.
"""

import argparse
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Say:
    """The model answers with text and ends its turn."""

    text: str


@dataclass(frozen=True, slots=True)
class CallTools:
    """The model calls tools: pairs of name and arguments. Arguments that are a string are sent as they are."""

    calls: tuple[tuple[str, Any], ...]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Refuse:
    """The endpoint refuses the request."""

    status: int = 400
    message: str = "refused by the script"


@dataclass(frozen=True, slots=True)
class Drop:
    """The endpoint starts to answer, and the connection breaks in the middle."""

    text: str = "I was about to say something important"


@dataclass(frozen=True, slots=True)
class Stop:
    """The endpoint ends an answer with this reason in its own words; with none, its stream ends and says nothing."""

    step: Say | CallTools
    reason: str | None = None


Step = Say | CallTools | Refuse | Drop | Stop
Policy = Callable[["Recorded"], Step]


def call(name: str, arguments: Any = None, *more: tuple[str, Any], text: str = "") -> CallTools:
    """One call, or several at once."""
    return CallTools(((name, arguments if arguments is not None else {}), *more), text)


def through_bridge(name: str, /, **arguments: Any) -> CallTools:
    """A call of a deferred tool through the bridge."""
    return call("tool_call", {"name": name, "arguments": arguments})


def search(query: str) -> CallTools:
    """A search."""
    return call("tool_search", {"query": query})


@dataclass(frozen=True, slots=True)
class Recorded:
    """A request, as it came over the wire."""

    path: str
    body: bytes
    headers: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def json(self) -> dict[str, Any]:
        """The body."""
        return json.loads(self.body)

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools array of the request."""
        return self.json.get("tools") or []

    @property
    def names(self) -> list[str]:
        """The names in the tools array."""
        return [str(tool.get("name") or tool.get("function", {}).get("name") or tool["type"]) for tool in self.tools]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation of the request."""
        body = self.json
        return body["input"] if "input" in body else body["messages"]

    def bytes_of(self, key: str) -> bytes:
        """The bytes of one value of the body, exactly as they were sent."""
        text = self.body.decode()
        decoder = json.JSONDecoder()
        place = text.index("{") + 1
        while True:
            name, place = decoder.raw_decode(text, text.index('"', place))
            start = text.index(":", place) + 1
            start += len(text[start:]) - len(text[start:].lstrip())
            _, place = decoder.raw_decode(text, start)
            if name == key:
                return text[start:place].encode()

    @property
    def results(self) -> list[str]:
        """The texts of all tool results in the conversation, in order."""
        return [text for message in self.messages for text in _result_texts(message)]


def _result_texts(message: dict[str, Any]) -> Iterator[str]:
    if message.get("role") == "tool":
        yield message["content"]
    elif message.get("type") == "function_call_output":
        yield message["output"]
    elif isinstance(message.get("content"), list):
        for block in message["content"]:
            if block.get("type") == "tool_result":
                content = block["content"]
                yield content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


class ScriptedModel:
    """The endpoint. Use it as a context manager; `url` is its address."""

    def __init__(
        self,
        script: Sequence[Step] | Policy = (),
        *,
        native: bool = True,
        window: int | None = None,
        port: int = 0,
    ) -> None:
        self._script = script
        self._native = native
        self.window = window
        self.requests: list[Recorded] = []
        self._next = 0
        self._calls = 0
        self._lock = threading.Lock()
        model = self

        class Handler(_Handler):
            endpoint = model

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=lambda: self._server.serve_forever(poll_interval=0.02), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def openai_url(self) -> str:
        """What an OpenAI client calls its base."""
        return f"{self.url}/v1"

    @property
    def finished(self) -> bool:
        """Whether every step of the script was used."""
        return not callable(self._script) and self._next >= len(self._script)

    def step(self, request: Recorded) -> Step:
        """What to answer to a request."""
        with self._lock:
            self.requests.append(request)
            problem = refusal_of(request.path, request.json, native=self._native)
            if problem:
                return Refuse(400, problem)
            if callable(self._script):
                return self._script(request)
            if self._next >= len(self._script):
                return Refuse(500, "the script has ended")
            step = self._script[self._next]
            self._next += 1
            return step

    def number_calls(self, count: int) -> list[str]:
        """Identifiers for so many calls."""
        with self._lock:
            start = self._calls
            self._calls += count
        return [f"call_{number}" for number in range(start, start + count)]


def refusal_of(path: str, body: dict[str, Any], *, native: bool) -> str | None:
    """What the real API says to a request that it does not take, if this is one."""
    tools = body.get("tools") or []
    if path.endswith("/messages"):
        return _anthropic_refusal(body, tools, native=native)
    if path.endswith("/responses"):
        return _responses_refusal(body, tools, native=native)
    open_calls: set[str] = set()
    for message in body["messages"]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
            open_calls.discard(message["tool_call_id"])
        elif open_calls:
            return f"tool_call_ids did not have response messages: {sorted(open_calls)}"
        open_calls |= {item["id"] for item in message.get("tool_calls") or []}
    return _duplicate([tool["function"]["name"] for tool in tools])


def _anthropic_refusal(body: dict[str, Any], tools: list[dict[str, Any]], *, native: bool) -> str | None:
    deferred = [tool for tool in tools if tool.get("defer_loading")]
    if deferred and not native:
        return "tools: deferred custom tools are only supported on Anthropic models"
    if tools and len(deferred) == len(tools):
        return "At least one tool must have defer_loading=false"
    if any(tool.get("cache_control") for tool in deferred):
        return "tools: cache_control cannot be set on a tool with defer_loading"
    names = {tool["name"] for tool in tools}
    waiting: set[str] = set()
    for message in body["messages"]:
        blocks = message["content"] if isinstance(message["content"], list) else []
        results = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
        if waiting - results:
            return f"tool_use ids were found without tool_result blocks: {sorted(waiting - results)}"
        waiting = {block["id"] for block in blocks if block["type"] == "tool_use"}
        for block in blocks:
            parts = block.get("content") if block["type"] == "tool_result" else []
            for part in parts if isinstance(parts, list) else []:
                if part["type"] == "tool_reference" and part["tool_name"] not in names:
                    return f"Tool reference '{part['tool_name']}' not found in available tools"
    return _duplicate([tool["name"] for tool in tools])


def _responses_refusal(body: dict[str, Any], tools: list[dict[str, Any]], *, native: bool) -> str | None:
    searches = [tool for tool in tools if tool["type"] == "tool_search"]
    if searches and not native:
        return "Tool type 'tool_search' is not supported with this model"
    if not searches and any(_is_deferred(tool) for tool in tools):
        return "Deferred tools require a tool_search tool"
    if len(searches) > 1:
        return "Only one tool_search tool is allowed"
    items = body["input"] if isinstance(body["input"], list) else []
    made = {item["call_id"] for item in items if item.get("type") in {"function_call", "tool_search_call"}}
    given = {item["call_id"] for item in items if item.get("type") in {"function_call_output", "tool_search_output"}}
    if made != given:
        return f"No tool output found for function call {sorted(made ^ given)[0]}"
    return _duplicate([tool["name"] for tool in tools if "name" in tool])


def _is_deferred(tool: dict[str, Any]) -> bool:
    return bool(tool.get("defer_loading")) or any(_is_deferred(inner) for inner in tool.get("tools", []))


def _duplicate(names: list[str]) -> str | None:
    return "tools: Tool names must be unique" if len(set(names)) != len(names) else None


class _Handler(BaseHTTPRequestHandler):
    endpoint: ScriptedModel
    broken = False
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        entry: dict[str, Any] = {"id": "scripted", "object": "model", "created": 0, "owned_by": "tests"}
        if self.endpoint.window:
            entry["max_model_len"] = self.endpoint.window
        many = self.path.rstrip("/").endswith("/models")
        self._send(200, {"object": "list", "data": [entry]} if many else entry)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        path = self.path.partition("?")[0]
        request = Recorded(path, body, {key.lower(): value for key, value in self.headers.items()})
        step = self.endpoint.step(request)
        if isinstance(step, Refuse):
            kind = "invalid_request_error"
            self._send(step.status, {"type": "error", "error": {"type": kind, "message": step.message, "code": None}})
            return
        asked = request.json
        wire = _WIRES[path.rsplit("/", 1)[-1]]
        broken = isinstance(step, Drop)
        if isinstance(step, Drop):
            step = Say(step.text)
        stop = step if isinstance(step, Stop) else None
        if isinstance(step, Stop):
            step = step.step
        count = len(step.calls) if isinstance(step, CallTools) else 0
        answer = wire.whole(step, self.endpoint.number_calls(count), asked)
        if stop is not None:
            wire.stop(answer, stop.reason)
        if not asked.get("stream"):
            self._send(200, answer)
            return
        self.broken = broken
        events = b"".join(
            (f"event: {name}\n" if name else "").encode()
            + b"data: "
            + (data.encode() if isinstance(data, str) else json.dumps(data).encode())
            + b"\n\n"
            for name, data in wire.stream(answer, asked)
        )
        self._reply(200, events, "text/event-stream")

    def _send(self, status: int, body: dict[str, Any]) -> None:
        self._reply(status, json.dumps(body).encode(), "application/json")

    def _reply(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.broken:
            self.wfile.write(body[: len(body) * 2 // 3])
            self.close_connection = True
            return
        self.wfile.write(body)


def _arguments(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [part for part in (text[:middle], text[middle:]) if part]


class _Chat:
    @staticmethod
    def stop(answer: dict[str, Any], reason: str | None) -> None:
        answer["choices"][0]["finish_reason"] = reason

    @staticmethod
    def whole(step: Say | CallTools, ids: list[str], asked: dict[str, Any]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": step.text or None}
        if isinstance(step, CallTools):
            message["tool_calls"] = [
                {"id": id_, "type": "function", "function": {"name": name, "arguments": _arguments(value)}}
                for id_, (name, value) in zip(ids, step.calls, strict=True)
            ]
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 0,
            "model": asked["model"],
            "choices": [
                {
                    "index": 0,
                    "message": message,
                    "finish_reason": "tool_calls" if isinstance(step, CallTools) else "stop",
                    "logprobs": None,
                }
            ],
            "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
        }

    @staticmethod
    def stream(answer: dict[str, Any], asked: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        choice = answer["choices"][0]
        message = choice["message"]
        head = {key: answer[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}

        def chunk(delta: dict[str, Any], finish: str | None = None) -> tuple[str, Any]:
            return "", {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

        yield chunk({"role": "assistant", "content": ""})
        for part in _halves(message["content"] or ""):
            yield chunk({"content": part})
        for index, item in enumerate(message.get("tool_calls", [])):
            function = item["function"]
            start = {"index": index, "id": item["id"], "type": "function"}
            yield chunk({"tool_calls": [{**start, "function": {"name": function["name"], "arguments": ""}}]})
            for part in _halves(function["arguments"]):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
        yield chunk({}, choice["finish_reason"])
        if (asked.get("stream_options") or {}).get("include_usage"):
            yield "", {**head, "choices": [], "usage": answer["usage"]}
        yield "", "[DONE]"


class _Anthropic:
    @staticmethod
    def stop(answer: dict[str, Any], reason: str | None) -> None:
        answer["stop_reason"] = reason

    @staticmethod
    def whole(step: Say | CallTools, ids: list[str], asked: dict[str, Any]) -> dict[str, Any]:
        content: list[dict[str, Any]] = [{"type": "text", "text": step.text}] if step.text else []
        if isinstance(step, CallTools):
            content += [
                {"type": "tool_use", "id": id_, "name": name, "input": value}
                for id_, (name, value) in zip(ids, step.calls, strict=True)
            ]
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": asked["model"],
            "content": content,
            "stop_reason": "tool_use" if isinstance(step, CallTools) else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 11, "output_tokens": 7},
        }

    @staticmethod
    def stream(answer: dict[str, Any], asked: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        start = {**answer, "content": [], "stop_reason": None}
        yield "message_start", {"type": "message_start", "message": start}
        for index, block in enumerate(answer["content"]):
            text = block["type"] == "text"
            empty = {**block, "text": ""} if text else {**block, "input": {}}
            yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": empty}
            whole = block["text"] if text else _arguments(block["input"])
            for part in _halves(whole):
                delta = {"type": "text_delta", "text": part} if text else {
                    "type": "input_json_delta", "partial_json": part,
                }  # fmt: skip
                yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
            yield "content_block_stop", {"type": "content_block_stop", "index": index}
        if answer["stop_reason"] is None:
            return
        delta = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
        yield "message_delta", {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}}
        yield "message_stop", {"type": "message_stop"}


class _Responses:
    @staticmethod
    def stop(answer: dict[str, Any], reason: str | None) -> None:
        answer["status"] = "incomplete" if reason else "in_progress"
        answer["incomplete_details"] = {"reason": reason} if reason else None

    @staticmethod
    def whole(step: Say | CallTools, ids: list[str], asked: dict[str, Any]) -> dict[str, Any]:
        output: list[dict[str, Any]] = []
        if step.text:
            part = {"type": "output_text", "text": step.text, "annotations": [], "logprobs": []}
            output.append(
                {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
            )
        if isinstance(step, CallTools):
            output += [
                _Responses.call(id_, name, value, asked) for id_, (name, value) in zip(ids, step.calls, strict=True)
            ]
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 0,
            "model": asked["model"],
            "status": "completed",
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "output": output,
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "usage": {
                "input_tokens": 11,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": 7,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": 18,
            },
        }

    @staticmethod
    def call(id_: str, name: str, value: Any, asked: dict[str, Any]) -> dict[str, Any]:
        native = any(tool["type"] == "tool_search" for tool in asked.get("tools") or [])
        if native and name == "tool_search":
            return {
                "type": "tool_search_call",
                "id": f"ts_{id_}",
                "call_id": id_,
                "arguments": value,
                "execution": "client",
                "status": "completed",
            }
        item = {"type": "function_call", "id": f"fc_{id_}", "call_id": id_, "name": name, "status": "completed"}
        item["arguments"] = _arguments(value)
        loaded = {
            tool["name"]: group["name"]
            for entry in asked["input"]
            if isinstance(entry, dict) and entry.get("type") == "tool_search_output"
            for group in entry["tools"]
            if group["type"] == "namespace"
            for tool in group["tools"]
        }
        return {**item, "namespace": loaded[name]} if name in loaded else item

    @staticmethod
    def stream(answer: dict[str, Any], asked: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        number = iter(range(1_000))

        def event(kind: str, **fields: Any) -> tuple[str, Any]:
            return kind, {"type": kind, "sequence_number": next(number), **fields}

        yield event("response.created", response={**answer, "status": "in_progress", "output": []})
        for index, item in enumerate(answer["output"]):
            empty = {**item, "content": []} if item["type"] == "message" else {**item, "status": "in_progress"}
            yield event("response.output_item.added", output_index=index, item=empty)
            if item["type"] == "message":
                part = item["content"][0]
                place = {"item_id": item["id"], "output_index": index, "content_index": 0}
                yield event("response.content_part.added", **place, part={**part, "text": ""})
                for text in _halves(part["text"]):
                    yield event("response.output_text.delta", **place, delta=text, logprobs=[])
                yield event("response.output_text.done", **place, text=part["text"], logprobs=[])
                yield event("response.content_part.done", **place, part=part)
            elif item["type"] == "function_call":
                place = {"item_id": item["id"], "output_index": index}
                for text in _halves(item["arguments"]):
                    yield event("response.function_call_arguments.delta", **place, delta=text)
                yield event(
                    "response.function_call_arguments.done", **place, arguments=item["arguments"], name=item["name"]
                )
            yield event("response.output_item.done", output_index=index, item=item)
        if answer["status"] != "in_progress":
            yield event(f"response.{answer['status']}", response=answer)


_WIRES: dict[str, Any] = {"completions": _Chat, "messages": _Anthropic, "responses": _Responses}


def read_script(raw: list[dict[str, Any]]) -> list[Step]:
    """Steps from JSON."""
    steps: list[Step] = []
    for entry in raw:
        if "call" in entry:
            calls = tuple((item["name"], item.get("arguments", {})) for item in entry["call"])
            steps.append(CallTools(calls, entry.get("text", "")))
        elif "drop" in entry:
            steps.append(Drop(entry["drop"]))
        elif "refuse" in entry:
            steps.append(Refuse(int(entry["refuse"]), entry.get("message", "refused by the script")))
        else:
            steps.append(Say(entry["say"]))
    return steps


def main() -> None:
    """Serves a script until it is interrupted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--script", type=Path, required=True)
    parser.add_argument("--port", type=int, default=8099)
    parser.add_argument("--window", type=int, default=None, help="context window to tell, in tokens")
    parser.add_argument("--no-native", action="store_true", help="refuse deferred tools, as other vendors do")
    options = parser.parse_args()
    script = read_script(json.loads(options.script.read_text(encoding="utf-8")))
    with ScriptedModel(script, port=options.port, window=options.window, native=not options.no_native) as model:
        print(f"scripted model at {model.openai_url} (OpenAI) and {model.url} (Anthropic)", flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            for number, request in enumerate(model.requests, 1):
                print(f"{number}. {request.path} {len(request.body)} bytes, {len(request.tools)} tools")


if __name__ == "__main__":
    main()
