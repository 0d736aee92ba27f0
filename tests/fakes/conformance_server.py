"""An MCP server that offers everything the official conformance scenarios call, in both protocol eras.

It stands behind the gateway while the suite tests the gateway, so that a failing scenario is the gateway's and not
the upstream's: run directly, this server passes every scored scenario. Names, texts and schemas here are the ones
the scenarios prescribe; everything else is ours.

    python tests/fakes/conformance_server.py --stdio
    python tests/fakes/conformance_server.py --http 127.0.0.1:8765      # endpoint /mcp; port 0 picks a free one
"""

import argparse
import base64
import json
import socket
import struct
import sys
import warnings
import zlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server import CacheHint, Server, ServerRequestContext
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

NAME = "conformance-upstream"
CACHE = CacheHint(ttl_ms=1000, scope="public")
PAUSE_SECONDS = 0.05
TEMPLATE_PREFIX, TEMPLATE_SUFFIX = "test://template/", "/data"

Context = ServerRequestContext[Any, Any]
Answer = types.CallToolResult | types.InputRequiredResult
Tool = Callable[[Context, types.CallToolRequestParams], Awaitable[Answer]]


def png() -> str:
    """One red pixel, built from its chunks so that no opaque blob lives in the source."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\x00\xff\x00\x00")
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return base64.b64encode(data).decode()


def wav() -> str:
    """Eight silent samples."""
    samples = b"\x80" * 8
    layout = b"fmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
    body = b"WAVE" + layout + b"data" + struct.pack("<I", len(samples)) + samples
    return base64.b64encode(b"RIFF" + struct.pack("<I", len(body)) + body).decode()


PNG, WAV = png(), wav()

ADDRESS_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def text(value: str, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=value)], is_error=is_error)


def image() -> types.ImageContent:
    return types.ImageContent(type="image", data=PNG, mime_type="image/png")


def embedded(uri: str, mime_type: str, content: str) -> types.EmbeddedResource:
    resource = types.TextResourceContents(uri=uri, mime_type=mime_type, text=content)
    return types.EmbeddedResource(type="resource", resource=resource)


def form(message: str, properties: Mapping[str, Any], required: list[str] | None = None) -> types.ElicitRequest:
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties)}
    if required:
        schema["required"] = required
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(prompt: str, max_tokens: int) -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=prompt))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[message], max_tokens=max_tokens)
    )


def ask(requests: dict[str, types.InputRequest], state: str | None = None) -> types.InputRequiredResult:
    return types.InputRequiredResult(input_requests=requests, request_state=state)


def require(ctx: Context, wanted: types.ClientCapabilities) -> None:
    """Refuse with -32021 when the client has not declared what the request needs."""
    if not ctx.session.check_client_capability(wanted):
        data = types.MissingRequiredClientCapabilityErrorData(required_capabilities=wanted)
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            "the client has not declared a capability that this request needs",
            data.model_dump(by_alias=True, exclude_none=True),
        )


# Content


async def simple_text(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    return text("This is a simple text response for testing.")


async def image_content(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    return types.CallToolResult(content=[image()])


async def audio_content(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    return types.CallToolResult(content=[types.AudioContent(type="audio", data=WAV, mime_type="audio/wav")])


async def embedded_resource(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    block = embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    return types.CallToolResult(content=[block])


async def multiple_content_types(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    data = json.dumps({"test": "data", "value": 123}, separators=(",", ":"))
    return types.CallToolResult(
        content=[
            types.TextContent(type="text", text="Multiple content types test:"),
            image(),
            embedded("test://mixed-content-resource", "application/json", data),
        ]
    )


async def error_handling(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    return text("This tool intentionally returns an error for testing", is_error=True)


async def echo_arguments(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    return text(json.dumps(params.arguments or {}, sort_keys=True))


# Things sent while a call runs


async def log(ctx: Context, message: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)  # logging is deprecated, old clients still use it
        await ctx.session.send_log_message("info", message, logger=NAME, related_request_id=ctx.request_id)  # pyright: ignore[reportDeprecated]


async def with_logging(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    await log(ctx, "Tool execution started")
    await anyio.sleep(PAUSE_SECONDS)
    await log(ctx, "Tool processing data")
    await anyio.sleep(PAUSE_SECONDS)
    await log(ctx, "Tool execution completed")
    return text("Tool with logging executed successfully")


async def with_progress(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100)
        await anyio.sleep(PAUSE_SECONDS)
    return text("Tool with progress executed successfully")


async def reconnection(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    """Close the response stream in mid-call: the answer is fetched by reconnecting."""
    if ctx.close_sse_stream is not None:
        await ctx.close_sse_stream()
    await anyio.sleep(2 * PAUSE_SECONDS)
    return text("Reconnection test completed")


# Questions to the client, old era: requests of their own


async def sample(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    request = sampling(str((params.arguments or {}).get("prompt", "")), 100)
    answer = await ctx.session.send_request(request, types.CreateMessageResult)
    content = answer.content
    return text(f"LLM response: {content.text if isinstance(content, types.TextContent) else content}")


async def elicit(ctx: Context, request: types.ElicitRequest, prefix: str) -> types.CallToolResult:
    answer = await ctx.session.send_request(request, types.ElicitResult)
    return text(f"{prefix}action={answer.action}, content={json.dumps(answer.content or {})}")


async def elicitation(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    fields = {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }
    message = str((params.arguments or {}).get("message", ""))
    return await elicit(ctx, form(message, fields, ["username", "email"]), "User response: ")


async def elicitation_defaults(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    fields = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return await elicit(ctx, form("Please review the defaults", fields), "Elicitation completed: ")


async def elicitation_enums(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    plain = ["option1", "option2", "option3"]
    numbers = ("First", "Second", "Third")

    def titled(noun: str) -> list[dict[str, str]]:
        return [{"const": f"value{i}", "title": f"{word} {noun}"} for i, word in enumerate(numbers, 1)]

    fields = {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled("Option")},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
    }
    return await elicit(ctx, form("Please choose", fields), "Elicitation completed: ")


# Questions to the client, new era: an incomplete result that the client answers by asking again


def answers(params: types.CallToolRequestParams | types.GetPromptRequestParams) -> Mapping[str, types.InputResponse]:
    return params.input_responses or {}


def field_of(response: types.InputResponse | None, name: str) -> Any:
    return (response.content or {}).get(name) if isinstance(response, types.ElicitResult) else None


NAME_FIELD = {"name": {"type": "string"}}


async def input_elicitation(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    name = field_of(answers(params).get("user_name"), "name")
    if name is None:
        return ask({"user_name": form("What is your name?", NAME_FIELD, ["name"])})
    return text(f"Hello, {name}!")


async def input_sampling(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    reply = answers(params).get("capital_question")
    if not isinstance(reply, types.CreateMessageResult | types.CreateMessageResultWithTools):
        return ask({"capital_question": sampling("What is the capital of France?", 100)})
    content = reply.content
    return text(content.text if isinstance(content, types.TextContent) else str(content))


async def input_list_roots(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    reply = answers(params).get("client_roots")
    if not isinstance(reply, types.ListRootsResult):
        return ask({"client_roots": types.ListRootsRequest()})
    return text("Roots: " + ", ".join(str(root.uri) for root in reply.roots))


async def input_request_state(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    if params.request_state == "confirm" and "confirm" in answers(params):
        return text("state-ok")
    return ask({"confirm": form("Please confirm", {"ok": {"type": "boolean"}}, ["ok"])}, "confirm")


async def input_multiple(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    wanted: dict[str, types.InputRequest] = {
        "user_name": form("What is your name?", NAME_FIELD, ["name"]),
        "greeting": sampling("Generate a greeting", 50),
        "client_roots": types.ListRootsRequest(),
    }
    if wanted.keys() <= answers(params).keys():
        return text("All inputs received")
    return ask(wanted, "multiple")


async def input_multi_round(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    given = answers(params)
    if params.request_state == "round-2" and "step2" in given:
        return text("All rounds complete")
    if params.request_state == "round-1" and "step1" in given:
        colour = {"color": {"type": "string"}}
        return ask({"step2": form("Step 2: What is your favorite color?", colour, ["color"])}, "round-2")
    return ask({"step1": form("Step 1: What is your name?", NAME_FIELD, ["name"])}, "round-1")


async def input_capabilities(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    """Ask only for what this client has declared."""
    declared = ctx.session.check_client_capability
    wanted: dict[str, types.InputRequest] = {}
    if declared(types.ClientCapabilities(elicitation=types.ElicitationCapability())):
        wanted["user_name"] = form("What is your name?", NAME_FIELD, ["name"])
    if declared(types.ClientCapabilities(sampling=types.SamplingCapability())):
        wanted["greeting"] = sampling("Generate a greeting", 50)
    if not wanted or wanted.keys() <= answers(params).keys():
        return text("Nothing left to ask")
    return ask(wanted)


async def missing_capability(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    require(ctx, types.ClientCapabilities(sampling=types.SamplingCapability()))
    return text("The client can sample")


def describe(name: str, description: str, schema: Mapping[str, Any] | None = None) -> types.Tool:
    return types.Tool(
        name=name, description=description, input_schema=dict(schema or {"type": "object", "properties": {}})
    )


def one_string(name: str, description: str, **extra: str) -> dict[str, Any]:
    properties = {name: {"type": "string", "description": description, **extra}}
    return {"type": "object", "properties": properties, "required": [name]}


REGION = one_string("region", "Where to run, mirrored into a request header", **{"x-mcp-header": "Region"})

TOOLS: list[tuple[types.Tool, Tool]] = [
    (describe("test_simple_text", "Returns one text block"), simple_text),
    (describe("test_image_content", "Returns one image"), image_content),
    (describe("test_audio_content", "Returns one sound"), audio_content),
    (describe("test_embedded_resource", "Returns one embedded resource"), embedded_resource),
    (describe("test_multiple_content_types", "Returns text, image and resource"), multiple_content_types),
    (describe("test_tool_with_logging", "Sends log messages while it runs"), with_logging),
    (describe("test_logging_tool", "Sends log messages to clients that asked for them"), with_logging),
    (describe("test_error_handling", "Always fails"), error_handling),
    (describe("test_tool_with_progress", "Reports progress while it runs"), with_progress),
    (describe("test_sampling", "Asks the client's model", one_string("prompt", "What to ask")), sample),
    (describe("test_elicitation", "Asks the user", one_string("message", "What to show")), elicitation),
    (describe("test_elicitation_sep1034_defaults", "Asks the user with default values"), elicitation_defaults),
    (describe("test_elicitation_sep1330_enums", "Asks the user to choose"), elicitation_enums),
    (describe("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features", ADDRESS_SCHEMA), echo_arguments),
    (describe("test_custom_headers", "Has an argument that travels as a header", REGION), echo_arguments),
    (describe("test_reconnection", "Closes its stream before it answers"), reconnection),
    (describe("test_missing_capability", "Needs a client that can sample"), missing_capability),
    (describe("test_streaming_elicitation", "Asks the user by an incomplete result"), input_elicitation),
    (describe("test_input_required_result_elicitation", "Asks for a name"), input_elicitation),
    (describe("test_input_required_result_sampling", "Asks the client's model"), input_sampling),
    (describe("test_input_required_result_list_roots", "Asks for the roots"), input_list_roots),
    (describe("test_input_required_result_request_state", "Asks with state"), input_request_state),
    (describe("test_input_required_result_tampered_state", "Asks with protected state"), input_request_state),
    (describe("test_input_required_result_multiple_inputs", "Asks three things at once"), input_multiple),
    (describe("test_input_required_result_multi_round", "Asks twice"), input_multi_round),
    (describe("test_input_required_result_capabilities", "Asks what the client can answer"), input_capabilities),
]

PROMPTS = [
    types.Prompt(name="test_simple_prompt", description="A prompt without arguments"),
    types.Prompt(
        name="test_prompt_with_arguments",
        description="A prompt with two arguments",
        arguments=[
            types.PromptArgument(name="arg1", description="First test argument", required=True),
            types.PromptArgument(name="arg2", description="Second test argument", required=True),
        ],
    ),
    types.Prompt(
        name="test_prompt_with_embedded_resource",
        description="A prompt that embeds a resource",
        arguments=[types.PromptArgument(name="resourceUri", description="Resource to embed", required=True)],
    ),
    types.Prompt(name="test_prompt_with_image", description="A prompt with an image"),
    types.Prompt(name="test_input_required_result_prompt", description="A prompt that asks for its context"),
]

RESOURCES = [
    types.Resource(uri="test://static-text", name="static-text", description="A fixed text", mime_type="text/plain"),
    types.Resource(uri="test://static-binary", name="static-binary", description="One pixel", mime_type="image/png"),
    types.Resource(uri="test://watched-resource", name="watched", description="A text that can be watched"),
]


def from_user(*blocks: types.ContentBlock) -> types.GetPromptResult:
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=block) for block in blocks])


def say(value: str) -> types.TextContent:
    return types.TextContent(type="text", text=value)


async def get_prompt(
    ctx: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    given = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            return from_user(say("This is a simple prompt for testing."))
        case "test_prompt_with_arguments":
            return from_user(say(f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'"))
        case "test_prompt_with_embedded_resource":
            uri = given.get("resourceUri", "test://example-resource")
            block = embedded(uri, "text/plain", "Embedded resource content for testing.")
            return from_user(block, say("Please process the embedded resource above."))
        case "test_prompt_with_image":
            return from_user(image(), say("Please analyze the image above."))
        case "test_input_required_result_prompt":
            context = field_of(answers(params).get("user_context"), "context")
            if context is None:
                fields = {"context": {"type": "string"}}
                return ask({"user_context": form("What context should the prompt use?", fields, ["context"])})
            return from_user(say(f"Context: {context}"))
        case _:
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")


async def read_resource(ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = str(params.uri)
    if uri == "test://static-binary":
        blob = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
        return types.ReadResourceResult(contents=[blob])
    if uri == "test://static-text":
        body, mime_type = "This is the content of the static text resource.", "text/plain"
    elif uri == "test://watched-resource":
        body, mime_type = "Watched resource content", "text/plain"
    elif uri.startswith(TEMPLATE_PREFIX) and uri.endswith(TEMPLATE_SUFFIX):
        key = uri.removeprefix(TEMPLATE_PREFIX).removesuffix(TEMPLATE_SUFFIX)
        body = json.dumps({"id": key, "templateTest": True, "data": f"Data for ID: {key}"})
        mime_type = "application/json"
    else:
        raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=mime_type, text=body)])


async def complete(ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    words = [word for word in ("paris", "park", "party") if word.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=words, total=len(words), has_more=False))


async def nothing(ctx: Context, params: Any) -> types.EmptyResult:
    return types.EmptyResult()


def build() -> Server[Any]:
    """A fresh server; the bus of change notices is its own."""
    bus = InMemorySubscriptionBus()
    runs = {tool.name: run for tool, run in TOOLS}
    listed = [tool for tool, _ in TOOLS]
    for name, event in (
        ("test_trigger_tool_change", ToolsListChanged()),
        ("test_trigger_prompt_change", PromptsListChanged()),
    ):

        async def trigger(
            ctx: Context, params: types.CallToolRequestParams, event: ToolsListChanged | PromptsListChanged = event
        ) -> Answer:
            await bus.publish(event)
            return text("Change announced")

        runs[name] = trigger
        listed.append(describe(name, "Announces that a list has changed"))
    schemas = {tool.name: tool.input_schema for tool in listed}

    async def list_tools(ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> Answer:
        if params.name not in runs:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        return await runs[params.name](ctx, params)

    async def list_prompts(ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=PROMPTS)

    async def list_resources(ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=RESOURCES)

    async def list_templates(
        ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            uri_template="test://template/{id}/data",
            name="template",
            description="Data by id",
            mime_type="application/json",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    server: Server[Any] = Server(
        NAME,
        version="1.0.0",
        cache_hints={
            "tools/list": CACHE,
            "prompts/list": CACHE,
            "resources/list": CACHE,
            "resources/templates/list": CACHE,
            "resources/read": CACHE,
        },
        get_tool_input_schema=schemas.get,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=nothing,
        on_unsubscribe_resource=nothing,
        on_subscriptions_listen=ListenHandler(bus),
        on_completion=complete,
    )
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, nothing)
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=NAME))
    return server


class Replay(EventStore):
    """Every event of the run, in order: enough for a client that reconnects to a closed stream."""

    def __init__(self) -> None:
        self._events: list[tuple[StreamId, types.JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: StreamId, message: types.JSONRPCMessage | None) -> EventId:
        self._events.append((stream_id, message))
        return str(len(self._events))

    async def replay_events_after(self, last_event_id: EventId, send_callback: EventCallback) -> StreamId | None:
        if not last_event_id.isdecimal() or not 0 < int(last_event_id) <= len(self._events):
            return None
        start = int(last_event_id)
        wanted = self._events[start - 1][0]
        for position, (stream, message) in enumerate(self._events[start:], start + 1):
            if stream == wanted and message is not None:
                await send_callback(EventMessage(message, str(position)))
        return wanted


async def serve_stdio() -> None:
    server = build()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def serve_http(host: str, port: int) -> None:
    app = build().streamable_http_app(host=host, event_store=Replay(), retry_interval=100)
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        print(f"http://{host}:{listener.getsockname()[1]}/mcp", flush=True)
        await uvicorn.Server(uvicorn.Config(app, log_level="warning")).serve(sockets=[listener])


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--stdio", action="store_true")
    where.add_argument("--http", metavar="HOST:PORT")
    chosen = parser.parse_args(arguments)
    if chosen.stdio:
        anyio.run(serve_stdio)
    else:
        host, _, port = chosen.http.rpartition(":")
        anyio.run(serve_http, host, int(port))


if __name__ == "__main__":
    main(sys.argv[1:])
