"""From an entry of `mcpServers` to what a server is started with."""

import pytest

from toolcrib.errors import SourceUnavailable
from toolcrib.sources.servers import resolve


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
