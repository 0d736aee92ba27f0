"""A turn with OpenAI's own SDK: chat completions, as every loop on earth writes it.

```python
async with Crib.from_config("toolcrib.yaml") as crib:
    session = crib.session(model_context=128_000)
    text = await run_turn(AsyncOpenAI(), session, model="gpt-5.4", messages=messages)
```
"""

from typing import TYPE_CHECKING, Any, cast

from toolcrib.adapters.turns import Turns
from toolcrib.definitions import Json, JsonObject
from toolcrib.limits import AGENT_STEPS
from toolcrib.session import Session

if TYPE_CHECKING:
    from openai import AsyncOpenAI


async def run_turn(
    client: "AsyncOpenAI",
    session: Session,
    *,
    model: str,
    messages: list[JsonObject],
    max_steps: int = AGENT_STEPS,
    turns: Turns | None = None,
) -> str:
    """Asks until the model calls nothing more, and returns what it said; `messages` grows by what happened.

    Pass the same `turns` with every turn of one conversation, so that its array stays the same.
    """
    state = turns or Turns(session, dialect="openai_chat")
    session.begin_turn()
    create: Any = client.chat.completions.create
    for _ in range(max_steps):
        turn, notice = state.next()
        if notice:
            messages.append({"role": "user", "content": notice})
        completion = await create(model=model, messages=messages, tools=turn.tools)
        message = completion.choices[0].message
        entry = cast("JsonObject", message.model_dump(mode="json", exclude_none=True))
        # Calls and their answers go in together: a conversation that is cancelled between them stays a valid one.
        answers = await session.execute(message.tool_calls or (), mode="parallel")
        messages += [{**entry, "content": message.content or ""}, *(answer.message for answer in answers)]
        if not message.tool_calls:
            return message.content or ""
    return "[stopped: too many steps]"


def as_messages(text: str, *, system: str | None = None) -> list[JsonObject]:
    """A conversation that starts with what the user says."""
    start: list[JsonObject] = [{"role": "system", "content": cast("Json", system)}] if system else []
    return [*start, {"role": "user", "content": text}]
