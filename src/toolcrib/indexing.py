"""Indexing has the index of a catalog made beside the event loop, which answers everybody else meanwhile."""

import asyncio
from concurrent.futures import Future
from threading import Thread
from weakref import WeakKeyDictionary

from toolcrib.catalog import Catalog
from toolcrib.discovery import Discovery


class Indexing:
    """Makes each index once, for all who wait for it."""

    __slots__ = ("_discovery", "_underway")

    def __init__(self, discovery: Discovery) -> None:
        self._discovery = discovery
        self._underway: WeakKeyDictionary[Catalog, Future[None]] = WeakKeyDictionary()

    def is_done(self, catalog: Catalog) -> bool:
        """Whether the index of this catalog is made, and nobody who came before still waits for it."""
        return self._discovery.is_prepared(catalog) and catalog not in self._underway

    async def wait_for(self, catalog: Catalog) -> None:
        """Returns once the index is made; all who wait go on in their order."""
        made = self._underway.get(catalog)
        if made is None:
            made = self._underway[catalog] = Future[None]()
            # A thread of its own: however many wait, those that others count on stay free.
            Thread(target=self._make, args=(catalog, made), daemon=True, name="toolcrib-index").start()
        try:
            # Whoever stops waiting does not stop it for the others.
            await asyncio.shield(asyncio.wrap_future(made))
        finally:
            if made.done() and self._underway.get(catalog) is made:
                del self._underway[catalog]

    def _make(self, catalog: Catalog, made: "Future[None]") -> None:
        try:
            self._discovery.prepare(catalog)
        except BaseException as error:  # whoever waits is told
            made.set_exception(error)
        else:
            made.set_result(None)
