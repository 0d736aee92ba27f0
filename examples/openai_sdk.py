"""A loop over OpenAI's SDK with more than a hundred tools for the price of three."""

import os

from openai import AsyncOpenAI
from workshop import QUESTION, check, main, open_endpoint, open_workshop

from toolcrib.adapters.openai_sdk import as_messages, run_turn


async def example() -> None:
    async with open_workshop() as crib:
        with open_endpoint() as (address, model, endpoint):
            async with AsyncOpenAI(base_url=address, api_key=os.environ.get("OPENAI_API_KEY", "none")) as client:
                session = crib.session(model_context=128_000)
                answer = await run_turn(client, session, model=model, messages=as_messages(QUESTION))
            check(crib, answer, endpoint)


if __name__ == "__main__":
    main(example)
