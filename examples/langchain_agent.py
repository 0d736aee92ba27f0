"""An agent of LangChain (a graph of LangGraph) whose tools are a session's."""

import os

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from workshop import QUESTION, check, main, open_endpoint, open_workshop

from toolcrib.adapters.langchain import langchain_tools


async def example() -> None:
    async with open_workshop() as crib:
        with open_endpoint() as (address, model, endpoint):
            key = SecretStr(os.environ.get("OPENAI_API_KEY", "none"))
            chat = ChatOpenAI(model=model, base_url=address, api_key=key)
            agent = create_agent(chat, tools=langchain_tools(crib.session(model_context=128_000)))
            state = await agent.ainvoke({"messages": [{"role": "user", "content": QUESTION}]})
            check(crib, str(state["messages"][-1].content), endpoint)


if __name__ == "__main__":
    main(example)
