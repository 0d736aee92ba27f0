"""A turn with Anthropic's own SDK: messages.

```python
async with Crib.from_config("toolcrib.yaml") as crib:
    session = crib.session(model_context=200_000)
    text = await run_turn(AsyncAnthropic(), session, model="claude-sonnet-4-5", messages=messages)
```
"""

from typing import TYPE_CHECKING, Any, cast

from toolcrib.adapters.turns import Turns
from toolcrib.definitions import Json, JsonObject
from toolcrib.limits import AGENT_STEPS, MODEL_OUTPUT_TOKENS
from toolcrib.session import Session

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic


async def run_turn(
    client: "AsyncAnthropic",
    session: Session,
    *,
    model: str,
    messages: list[JsonObject],
    max_tokens: int = MODEL_OUTPUT_TOKENS,
    max_steps: int = AGENT_STEPS,
    turns: Turns | None = None,
) -> str:
    """Asks until the model calls nothing more, and returns what it said; `messages` grows by what happened.

    Pass the same `turns` with every turn of one conversation, so that its array stays the same.
    """
    state = turns or Turns(session, dialect="anthropic")
    session.begin_turn()
    create: Any = client.messages.create
    turn, notice = state.next()
    if notice:
        messages.append({"role": "user", "content": notice})
    for _ in range(max_steps):
        reply = await create(model=model, max_tokens=max_tokens, messages=messages, tools=turn.tools)
        blocks = [cast("JsonObject", block.model_dump(mode="json", exclude_none=True)) for block in reply.content]
        said: JsonObject = {"role": "assistant", "content": cast("Json", blocks)}
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            messages.append(said)
            return "".join(block.text for block in reply.content if block.type == "text")
        answers = await session.execute(calls, mode="parallel")
        results: list[JsonObject] = [answer.message for answer in answers]
        turn, notice = state.next()
        if notice:
            results.append({"type": "text", "text": notice})
        # Calls and their answers go in together: a conversation that is cancelled between them stays a valid one.
        messages += [said, {"role": "user", "content": cast("Json", results)}]
    return "[stopped: too many steps]"
