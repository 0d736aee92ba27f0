"""What went away is let go of: caches are bounded, and none keeps the toolset alive that it was derived from."""

import gc
import weakref

from tests.factories import crib, definition, settings

from toolcrib.definitions import Toolset
from toolcrib.limits import CACHE_CATALOGS
from toolcrib.sources.base import freeze_toolset
from toolcrib.sources.listed import ListedToolsets


def test_a_toolset_that_changed_often_enough_is_gone_although_it_was_assembled_listed_and_searched() -> None:
    def offered(number: int) -> Toolset:
        return freeze_toolset("mcp-door", [definition("open_door", f"Open door {number}.")], origin="mcp")

    first = offered(0)
    ghost = weakref.ref(first)
    subject = crib(ListedToolsets("listed", (first,)), settings=settings(enabled="on", retrieval="lexical"))
    del first
    session = subject.session()
    for number in range(1, CACHE_CATALOGS + 3):
        session.assemble()
        assert session.search("open door").names == ("door__open_door",)
        session.begin_turn()
        subject.remove("listed")
        subject.add(ListedToolsets("listed", (offered(number),)))
    session.assemble()
    gc.collect()
    assert ghost() is None
