"""Results of servers: what is added to them leaves them JSON, and adds nothing twice."""

from typing import Any

import orjson
import pytest
from tests.fakes.memory_upstream import MemoryServer
from tests.gateway.clients import gateway_client

from toolcrib.gateway.results import with_type


@pytest.mark.parametrize("result", [b"{}", b"{ \r\n}", b'{"a":1}', b'{ "a" : 1 }', b'{"a":{"resultType":"x"}}',
    b'{"a":"resultType"}', b'{"a":[{"resultType":"x"}],"b":{}}',
    b'{"a":[{"b":1,"resultType":"complete"}]}'])  # fmt: skip
def test_a_result_without_its_own_type_gets_one(result: bytes) -> None:
    assert orjson.loads(with_type(result)) == {
        "resultType": "complete",
        **orjson.loads(result),
    }


@pytest.mark.parametrize("result", [b'{"resultType":"input_required"}', b'{"a":{"resultType":1},"resultType":"x"}',
    b'{ "resultType" : null }', b'{"a":{},"resultType":"complete"}'])  # fmt: skip
def test_a_result_with_its_own_type_stays_as_it_is(result: bytes) -> None:
    assert with_type(result) == result


def server_of(answer: Any) -> MemoryServer:
    return MemoryServer(
        prompts__list=lambda params: {"prompts": [{"name": "greet"}]},
        prompts__get=lambda params: answer,
        resources__list=lambda params: {"resources": [{"uri": "repo://a", "name": "a"}]},
        resources__read=lambda params: answer,
        completion__complete=lambda params: answer,
    )


REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("prompts/get", {"name": "one__greet"}),
    ("resources/read", {"uri": "repo://a"}),
    ("resources/read", {"uri": "one+repo://a"}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "one__greet"}}),
]


@pytest.mark.parametrize(("method", "params"), REQUESTS)
@pytest.mark.parametrize("answer", [{}, {"_meta": {"resultType": "x", "ttlMs": 9}}])
async def test_a_modern_client_reads_whatever_object_an_old_server_answers(
    method: str, params: dict[str, Any], answer: dict[str, Any]
) -> None:
    async with gateway_client(server_of(answer).source("one"), modern=True) as client:
        result = (await client.ask(method, **params))["result"]
    read = {"ttlMs": 0, "cacheScope": "private"} if method == "resources/read" else {}
    assert result == {"resultType": "complete", **read, **answer}


@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.parametrize(("method", "params"), REQUESTS)
@pytest.mark.parametrize("answer", [None, [], "text", 7])
async def test_what_is_no_object_is_no_result_and_told_so(
    modern: bool, method: str, params: dict[str, Any], answer: Any
) -> None:
    async with gateway_client(server_of(answer).source("one"), modern=modern) as client:
        error = (await client.ask(method, **params))["error"]
    assert error["message"] == "The server answered with something that is no result."
