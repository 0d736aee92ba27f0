import socket
from types import SimpleNamespace
from typing import Literal

import pytest

from toolcrib.agent.models import open_model, told_window, window_of
from toolcrib.agent.openai_client import _Gathered
from toolcrib.agent.pieces import Pieces
from toolcrib.errors import ConfigError, ModelError
from toolcrib.settings import AgentSettings


@pytest.mark.requirement("S14")
def test_the_window_comes_from_the_operator_then_the_endpoint_then_the_table() -> None:
    assert window_of("claude-sonnet-4-5", configured=1_000, told=2_000) == 1_000
    assert window_of("claude-sonnet-4-5", told=2_000) == 2_000
    assert window_of("claude-sonnet-4-5") == 200_000
    assert window_of("anthropic/claude-sonnet-4-5") == 200_000
    assert window_of("qwen3:8b") == 262_144
    assert window_of("a-model-that-nobody-knows") is None


@pytest.mark.requirement("S14")
@pytest.mark.parametrize(
    ("entry", "window"),
    [
        ({"max_model_len": 8_192}, 8_192),
        ({"context_length": 131_072}, 131_072),
        ({"meta": {"n_ctx_train": 4_096}}, 4_096),
        ({"id": "m"}, None),
        ({"max_model_len": True}, None),
        ("text", None),
    ],
)
def test_endpoints_tell_their_window_in_different_words(entry: object, window: int | None) -> None:
    assert told_window(entry) == window


def test_a_model_must_be_named_and_a_key_comes_from_the_environment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="--model"):
        open_model(AgentSettings())
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        open_model(AgentSettings(model="gpt-5.4"))
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        open_model(AgentSettings(model="claude-opus-5", api="anthropic"))
    with pytest.raises(ConfigError, match="MY_KEY"):
        open_model(AgentSettings(model="m", endpoint="http://127.0.0.1:1", key_env="MY_KEY"))


def chunk(*parts: dict[str, object], text: str | None = None, finish: str | None = None) -> object:
    calls = [
        SimpleNamespace(index=part.get("index"), id=part.get("id"), function=SimpleNamespace(name=part.get("name"), arguments=part.get("arguments")))
        for part in parts
    ]  # fmt: skip
    delta = SimpleNamespace(content=text, tool_calls=calls or None)
    return SimpleNamespace(usage=None, choices=[SimpleNamespace(finish_reason=finish, delta=delta)])


@pytest.mark.requirement("X28")
def test_calls_that_an_endpoint_numbers_or_names_badly_are_kept_apart() -> None:
    gathered = _Gathered(3)
    said: list[str] = []
    gathered.take(chunk(text="Let me see."), said.append)
    gathered.take(chunk({"index": 0, "id": "a", "name": "one", "arguments": "{"}), said.append)
    gathered.take(chunk({"index": 0, "id": "a", "name": "one", "arguments": "}"}), said.append)
    gathered.take(chunk({"index": 0, "id": "b", "name": "two", "arguments": "{}"}), said.append)
    gathered.take(chunk({"index": None, "id": None, "name": None, "arguments": None}, finish="length"), said.append)
    reply = gathered.reply()
    assert said == ["Let me see."]
    assert reply.ending == "cut"
    assert [(call["id"], call["function"]["name"]) for call in reply.calls] == [
        ("a", "one"),
        ("b", "two"),
        ("call_3_2", "unnamed"),
    ]


def test_pieces_of_calls_that_are_all_numbered_alike_go_to_the_call_that_came_last() -> None:
    gathered = _Gathered(0)
    for piece in (
        {"index": 0, "id": "a", "name": "f", "arguments": '{"x":'},
        {"index": 0, "arguments": "1}"},
        {"index": 0, "id": "b", "name": "g", "arguments": '{"y":'},
        {"index": 0, "arguments": "2"},
        {"index": 0, "id": "a", "arguments": " "},
        {"index": 0, "id": "b", "arguments": "}"},
        {"index": 1, "id": "c", "name": "h", "arguments": "{}"},
    ):
        gathered.take(chunk(piece), lambda text: None)
    gathered.take(chunk(finish="tool_calls"), lambda text: None)
    told = [(call["id"], call["function"]) for call in gathered.reply().calls]
    assert told == [
        ("a", {"name": "f", "arguments": '{"x":1} '}),
        ("b", {"name": "g", "arguments": '{"y":2}'}),
        ("c", {"name": "h", "arguments": "{}"}),
    ]


def test_an_empty_reply_is_still_a_message_but_no_reply_is_an_error() -> None:
    gathered = _Gathered(0)
    gathered.take(chunk(finish="stop"), print)
    assert gathered.reply().items == ({"role": "assistant", "content": ""},)
    with pytest.raises(ModelError, match="broke off"):
        _Gathered(0).reply()


def test_halves_of_a_character_are_joined_over_pieces_and_a_lone_one_is_replaced() -> None:
    gathered = _Gathered(0)
    said: list[str] = []
    pieces = Pieces(said.append)
    for text in ("smile \ud83d", "\ude00 and \ud83d", "no", " half \ud83d"):
        gathered.take(chunk(text=text), pieces)
    gathered.take(chunk({"index": 0, "id": "a", "name": "f", "arguments": '"\ud83d'}), pieces)
    gathered.take(chunk({"index": 0, "arguments": '\ude00"'}, finish="tool_calls"), pieces)
    pieces.end()
    reply = gathered.reply()
    assert "".join(said) == reply.text == "smile 😀 and \ufffdno half \ufffd"
    assert reply.items[0]["content"] == reply.text
    assert reply.calls[0]["function"] == {"name": "f", "arguments": '"😀"'}


@pytest.mark.parametrize("api", ["openai_chat", "openai_responses", "anthropic"])
async def test_an_endpoint_that_cannot_be_reached_is_named_with_the_cause(
    api: Literal["openai_chat", "openai_responses", "anthropic"],
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{closed.getsockname()[1]}"
        model = open_model(AgentSettings(model="m", api=api, endpoint=endpoint, max_steps=1))
        with pytest.raises(ModelError) as caught:
            await model.reply(system="", items=[model.say("hi")], tools=[], take=lambda text: None)
        await model.close()
    assert str(caught.value).startswith(f"The endpoint {endpoint} cannot be used: Connection error: ")
    assert not str(caught.value).endswith("..")
