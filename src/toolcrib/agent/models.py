"""Models: what the loop needs of one, which client speaks to it, and how much context it has.

A conversation is kept in the wire format of its model API, so nothing that a model said is translated and sent back
changed: an endpoint's prompt cache sees the same bytes again (X10). A client only ever appends.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from toolcrib.definitions import DialectName, JsonObject
from toolcrib.errors import ConfigError, ModelError
from toolcrib.settings import AgentSettings

TakeText = Callable[[str], None]
"""Takes a piece of the reply as it arrives."""

WINDOWS: tuple[tuple[str, int], ...] = (
    (r"claude-.*-1m\b", 1_000_000),
    (r"claude", 200_000),
    (r"gpt-5", 400_000),
    (r"gpt-4\.1", 1_047_576),
    (r"gpt-4o|o[134]\b", 128_000),
    (r"gemini", 1_048_576),
    (r"kimi-k", 262_144),
    (r"qwen3", 262_144),
    (r"glm-[45]", 131_072),
    (r"deepseek", 131_072),
    (r"llama-?[34]|mistral|devstral|gpt-oss", 131_072),
    (r"smollm2", 8_192),
)
"""Context windows by model name, in tokens: the first pattern that is found counts. A guess of last resort, on the
small side where a family has several."""

Ending = Literal["whole", "cut", "declined", "paused"]
"""How a reply ends: as the model meant it, at the bound of its length, in a refusal, or to be asked to go on."""

_WINDOW_FIELDS = ("max_model_len", "context_length", "context_window", "max_input_tokens", "n_ctx", "n_ctx_train")
"""What endpoints call the window: vLLM, OpenRouter, various gateways, Anthropic, llama.cpp."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What the endpoint says that a request cost, if it says anything."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the model answered to one request."""

    text: str
    items: tuple[JsonObject, ...]
    """The reply as the conversation keeps it, in the model API's own shape."""
    calls: tuple[JsonObject, ...] = ()
    """The calls in it, in the model API's own shape."""
    usage: Usage = field(default_factory=Usage)
    ending: Ending = "whole"


class Model(Protocol):
    """A model behind an endpoint."""

    @property
    def name(self) -> str:
        """The model's name at its endpoint."""
        ...

    @property
    def endpoint(self) -> str:
        """Where it is asked."""
        ...

    @property
    def dialect(self) -> DialectName:
        """The wire format."""
        ...

    async def window(self) -> int | None:
        """The context window that the endpoint tells, in tokens, if it tells one."""
        ...

    async def reply(
        self, *, system: str, items: Sequence[JsonObject], tools: Sequence[JsonObject], take: TakeText
    ) -> Reply:
        """Asks once; `take` gets the text as it comes.

        Raises `ModelError`, also for a reply that broke off, and `ModelRefused`.
        """
        ...

    def say(self, text: str) -> JsonObject:
        """What the person says, as an item of the conversation."""
        ...

    def answer(self, messages: Sequence[JsonObject], notice: str | None) -> list[JsonObject]:
        """The results of calls, and a notice behind them, as items of the conversation."""
        ...

    async def close(self) -> None:
        """Lets go of connections."""
        ...


def notice_text(notice: str) -> str:
    """A notice so that the model can tell it from what the person says."""
    return f"[notice from the host: {notice}]"


def broken_off(name: str) -> ModelError:
    """The error for a stream that ended without saying how: the reply may be half, its calls, too."""
    return ModelError(f"The reply of {name} broke off: the endpoint ended its stream without a reason.")


def unreachable(error: Exception) -> str:
    """One sentence about an endpoint that could not be asked: which one, and what lies below the SDK's own words."""
    url = getattr(getattr(error, "request", None), "url", None)
    place = f" {url.scheme}://{url.netloc.decode()}" if url is not None and url.scheme else ""
    said = [" ".join(str(each).split()).rstrip(".") for each in (error, error.__cause__) if each is not None]
    words = ": ".join(dict.fromkeys(filter(None, said)))[:300]
    return f"The endpoint{place} cannot be used: {words or type(error).__name__}."


def window_of(name: str, *, configured: int | None = None, told: int | None = None) -> int | None:
    """The window to judge by: what the operator says, else what the endpoint says, else our table (S14)."""
    if configured or told:
        return configured or told
    bare = name.lower().rpartition("/")[2]
    return next((window for pattern, window in WINDOWS if re.search(pattern, bare)), None)


def told_window(entry: object) -> int | None:
    """The window in an endpoint's own words about a model."""
    dump = getattr(entry, "model_dump", None)
    fields: object = dump() if callable(dump) else entry
    if not isinstance(fields, dict):
        return None
    known: dict[str, object] = {str(key): value for key, value in fields.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    for key in _WINDOW_FIELDS:
        value = known.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    meta = known.get("meta")
    return told_window(meta) if isinstance(meta, dict) else None  # pyright: ignore[reportUnknownArgumentType]


def open_model(settings: AgentSettings) -> Model:
    """The client for the configured model. Raises `ConfigError`."""
    if not settings.model:
        raise ConfigError("No model is named: give --model NAME, or `agent.model` in the configuration file.")
    try:
        if settings.api == "anthropic":
            from toolcrib.agent.anthropic_client import AnthropicModel

            return AnthropicModel(settings, key=_key(settings, "ANTHROPIC_API_KEY"))
        from toolcrib.agent.openai_client import ChatModel, ResponsesModel

        client = ResponsesModel if settings.api == "openai_responses" else ChatModel
        return client(settings, key=_key(settings, "OPENAI_API_KEY"))
    except ImportError as error:
        raise ConfigError(f"`{error.name}` is not installed: pip install 'toolcrib[agent]'.") from None


def _key(settings: AgentSettings, usual: str) -> str:
    """The key, only ever from the environment. An endpoint of one's own may need none."""
    name = settings.key_env or usual
    value = os.environ.get(name, "")
    if not value and (settings.key_env or settings.endpoint is None):
        raise ConfigError(f"The key is missing: set the environment variable {name}.")
    return value or "none"
