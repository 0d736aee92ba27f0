"""From an entry of `mcpServers` to what a server is started with."""

from typing import Any

import pytest

from toolcrib.config import build_settings
from toolcrib.errors import SourceUnavailable
from toolcrib.sources.servers import open_servers, require_header, resolve


def test_a_reference_becomes_the_value_of_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "abc")
    assert resolve("${MY_KEY}") == "abc"
    assert resolve("Bearer ${MY_KEY}") == "Bearer abc"
    assert resolve("plain $text") == "plain $text"


@pytest.mark.parametrize("value", [None, "${MY_KEY}", "${env:MY_KEY}"])
def test_a_variable_that_nobody_set_is_missing_also_when_a_client_passes_on_its_reference(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("MY_KEY", value)
    with pytest.raises(SourceUnavailable, match="MY_KEY is not set"):
        resolve("${MY_KEY}")


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"url": "https://${TENANT}.example.com/mcp"}, "`url` has the variable TENANT inside a longer value"),
        (
            {"url": "http://127.0.0.1:9/mcp", "headers": {"X-Key": "Token ${MY_KEY}"}},
            "`X-Key` has the variable MY_KEY inside a longer value",
        ),
        ({"url": "127.0.0.1:9/mcp"}, "the address does not begin with https://"),
        ({"url": "https:///mcp"}, "the address names no host"),
        ({"url": "ftp://127.0.0.1/mcp"}, "the address does not begin with https://"),
        ({"url": "http://[::1/mcp"}, "the address cannot be read"),
        ({"url": "http://127.0.0.1:123456/mcp"}, "the address cannot be read"),
        ({"command": "sh", "args": ["-c", "exit\0 1"]}, "an argument or a variable has a null character"),
        ({"command": "sh", "env": {"A": "a\0b"}}, "an argument or a variable has a null character"),
    ],
)
async def test_an_entry_that_cannot_be_meant_so_is_a_reason_and_nobody_is_asked(entry: dict[str, Any], said: str):
    (source,) = open_servers(build_settings({"mcpServers": {"one": entry}}))
    await source.start()
    try:
        await source.settled.wait()
        assert said in (source.snapshot()[0].unavailable or "")
    finally:
        await source.close()


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n", " "])
def test_the_end_of_the_line_that_a_value_comes_from_is_no_part_of_a_header(end: str) -> None:
    assert require_header("Authorization", f"Bearer sk-12345678{end}") == "Bearer sk-12345678"


@pytest.mark.requirement("X17", "F9")
@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"X-Key": "sk-1234\r\nHost: there"}, "the header `X-Key` has a line break"),
        ({"X-Key": "sk-1234\0"}, "the header `X-Key` has a line break"),
        ({"X-Key": "sk-1234ü"}, "or a character that no header can hold"),
        ({"X Key": "sk-1234"}, "`X Key` is no name of a header"),
        ({"": "sk-1234"}, "`` is no name of a header"),
    ],
)
async def test_a_header_that_cannot_be_sent_is_a_reason_without_its_value(headers: dict[str, str], said: str):
    (source,) = open_servers(
        build_settings({"mcpServers": {"one": {"url": "http://127.0.0.1:9/mcp", "headers": headers}}})
    )
    await source.start()
    try:
        await source.settled.wait()
        reason = source.snapshot()[0].unavailable or ""
        assert said in reason
        assert "sk-" not in reason
    finally:
        await source.close()
