"""An agent of Pydantic AI with a session as its toolset."""

import os

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from workshop import QUESTION, check, main, open_endpoint, open_workshop

from toolcrib.adapters.pydantic_ai import CribToolset


async def example() -> None:
    async with open_workshop() as crib:
        with open_endpoint() as (address, model, endpoint):
            provider = OpenAIProvider(base_url=address, api_key=os.environ.get("OPENAI_API_KEY", "none"))
            agent = Agent(
                OpenAIChatModel(model, provider=provider),
                toolsets=[CribToolset(crib.session(model_context=128_000))],
            )
            result = await agent.run(QUESTION)
            check(crib, str(result.output), endpoint)


if __name__ == "__main__":
    main(example)
