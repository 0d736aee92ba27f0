"""Cards: what an answer shows of a tool, made once and never shared with whoever reads the answer."""

import orjson
import pytest
from tests.factories import crib, definition

from toolcrib import limits
from toolcrib.cards import Cards, make_card
from toolcrib.intake.freezing import freeze_tool


def test_a_card_knows_its_size() -> None:
    card = make_card(freeze_tool(definition("ünlock", "Öffnet die Tür."), toolset="mcp-door", origin="mcp"))
    assert card.tokens == -(-len(orjson.dumps(card.entry).decode()) // 4)
    assert card.schema_chars == 0


def test_the_same_definition_has_one_card_and_another_definition_another() -> None:
    cards = Cards()
    first, again, other = (
        freeze_tool(definition("open", text), toolset="mcp-door", origin="mcp") for text in ("Open.", "Open.", "Shut.")
    )
    assert cards.of(first) is cards.of(again)
    assert cards.of(other).entry["description"] == "Shut"


def test_no_more_cards_are_kept_than_the_limit_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.cards.CACHE_CARDS", 3)
    cards = Cards()
    for number in range(limits.RESULTS_MAX_HITS):
        cards.of(freeze_tool(definition(f"t{number}"), toolset="mcp-x", origin="mcp"))
        assert len(cards._kept) <= 3


def test_whoever_changes_an_answer_changes_no_other_answer() -> None:
    session = crib().session()
    session.search("create issue").body["matches"][0]["name"] = "mine"
    session.begin_turn()
    assert session.search("create issue").names[0] == "github__create_issue"
    session.begin_turn()
    assert session.search("create issue").body["matches"][0]["name"] == "github__create_issue"
