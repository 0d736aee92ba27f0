"""A running gateway follows its lock file: what somebody approves or withdraws counts without a restart.

The file is looked at once a second, which costs nothing; if it changed, everything that the servers offer is held
against it again, and clients are told if their own list changed by it.
"""

import asyncio
import logging

from toolcrib.crib import Crib
from toolcrib.gateway.changes import ChangeFeed
from toolcrib.limits import REFRESH_EVERY_S

logger = logging.getLogger("toolcrib.gateway")


async def watch_lock(crib: Crib, changes: ChangeFeed, *, every_s: float = REFRESH_EVERY_S) -> None:
    """Looks until it is cancelled."""
    intake = crib.intake
    while True:
        await asyncio.sleep(every_s)
        if intake.is_outdated:
            logger.info("%s changed: what it approves counts from now on", intake.path)
            crib.refresh()
            changes.announce_all()
