"""Seats: which session a core tool acts for.

`execute_code` and `delegate_task` need the very session that called them, because the code's calls and the
sub-agent's scope are that session's. A seat is found by its principal, which is unique: a second session that claims
a taken one is refused, so that no tool can ever act for the wrong session (S21).
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from toolcrib.agent.models import Model
from toolcrib.dialects.reveal import RevealSetting
from toolcrib.errors import ConfigError, ToolFailed
from toolcrib.execution.dispatch import CallContext
from toolcrib.session import Session


@dataclass(slots=True, kw_only=True)
class Seat:
    """What a core tool may know of the conversation that called it."""

    session: Session
    model: Model | None = None
    """The model that sub-agents use."""
    reveal: RevealSetting = "auto"
    depth: int = 0
    """Sub-agents between the person and this seat."""
    todo: list[tuple[str, bool]] = field(default_factory=list[tuple[str, bool]])


class Seats:
    """The taken seats."""

    def __init__(self) -> None:
        self._seats: dict[str, Seat] = {}

    @contextmanager
    def take(self, seat: Seat) -> Generator[Seat]:
        """Takes a seat for as long as the conversation lasts. Raises `ConfigError` if it is taken."""
        principal = seat.session.principal
        if principal in self._seats:
            raise ConfigError(f"The principal `{principal}` has a conversation already: give the new one its own.")
        self._seats[principal] = seat
        try:
            yield seat
        finally:
            del self._seats[principal]

    def of(self, context: CallContext) -> Seat:
        """The seat that a call came from. Raises `ToolFailed`."""
        seat = self._seats.get(context.principal)
        if seat is None:
            raise ToolFailed("This tool works inside an agent's conversation only.")
        return seat
