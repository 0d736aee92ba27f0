"""An agent of the OpenAI Agents SDK whose tools are a session's."""

import os

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI
from workshop import QUESTION, check, main, open_endpoint, open_workshop

from toolcrib.adapters.openai_agents import function_tools


async def example() -> None:
    set_tracing_disabled(True)
    async with open_workshop() as crib:
        with open_endpoint() as (address, model, endpoint):
            async with AsyncOpenAI(base_url=address, api_key=os.environ.get("OPENAI_API_KEY", "none")) as client:
                agent = Agent(
                    name="worker",
                    model=OpenAIChatCompletionsModel(model=model, openai_client=client),
                    tools=[*function_tools(crib.session(model_context=128_000))],
                )
                result = await Runner.run(agent, QUESTION)
            check(crib, str(result.final_output), endpoint)


if __name__ == "__main__":
    main(example)
