"""A loop over Anthropic's SDK with more than a hundred tools for the price of three."""

import os

from anthropic import AsyncAnthropic
from workshop import QUESTION, check, main, open_endpoint, open_workshop

from toolcrib.adapters.anthropic_sdk import run_turn


async def example() -> None:
    async with open_workshop() as crib:
        with open_endpoint("ANTHROPIC_BASE_URL") as (address, model, endpoint):
            async with AsyncAnthropic(base_url=address, api_key=os.environ.get("ANTHROPIC_API_KEY", "none")) as client:
                session = crib.session(model_context=200_000)
                messages = [{"role": "user", "content": QUESTION}]
                answer = await run_turn(client, session, model=model, messages=[{**message} for message in messages])
            check(crib, answer, endpoint)


if __name__ == "__main__":
    main(example)
