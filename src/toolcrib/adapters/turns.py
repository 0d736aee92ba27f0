"""The array of a conversation from one request to the next, for loops that speak a model API's dialect."""

from toolcrib.assembly import Turn
from toolcrib.definitions import DialectName
from toolcrib.session import Session


class Turns:
    """Keeps the array in force: the same bytes, until only a new array can show what came (X10)."""

    def __init__(self, session: Session, *, dialect: DialectName) -> None:
        self._session = session
        self._dialect: DialectName = dialect
        self._turn: Turn | None = None

    def next(self) -> tuple[Turn, str | None]:
        """The turn to send, and a notice for the end of the conversation, if something changed."""
        turn = self._session.assemble(dialect=self._dialect, previous=self._turn)
        notice = turn.notice
        if turn.rebase_advised:
            turn, notice = turn.rebased(), None
        self._turn = turn
        return turn, f"[notice from the host: {notice}]" if notice else None
