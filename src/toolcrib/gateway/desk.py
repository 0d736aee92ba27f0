"""Questions that wait for a person at the command line, where the client itself cannot ask (X22).

The gateway that is called and the command that agrees are two processes, so a question is a file: written when a call
is refused, renamed by `toolcrib approvals grant`, and removed by the next call that it is meant for. Renaming and
removing are atomic, so that one agreement lets exactly one call through, however many ask at once (B4).

Invariant: a file counts for one binding (tool, definition, arguments, principal) and until its time is over; what
others could have written counts for nothing.
"""

import hashlib
import os
import secrets
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from toolcrib.errors import ApprovalRequired, ConfigError
from toolcrib.execution.approval import ApprovalRequest
from toolcrib.gateway.asking import show_arguments
from toolcrib.home import NO_HOME, find_home
from toolcrib.limits import APPROVAL_TTL_MAX_S, APPROVAL_TTL_S, APPROVALS_PENDING

_ASKED = ".asked"
_GRANTED = ".granted"
_FILE_MAX_BYTES = 65_536
_ID_DIGITS = 32
"""Two calls with the same id are out of reach at 128 bits."""


class Waiting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call that somebody may agree to."""

    id: str
    tool: str
    toolset: str
    principal: str
    arguments: str
    """For people: what could mislead a reader is written out, and long values are cut."""
    rule: str
    binding: str
    expires: int
    """Seconds since the epoch."""


def default_directory() -> Path | None:
    """Where the questions of this user's gateways wait; nowhere for a user without a home."""
    base, home = os.environ.get("XDG_STATE_HOME"), find_home()
    state = Path(base) if base else home and home / ".local" / "state"
    return state and state / "toolcrib" / "approvals"


def show_time(seconds: float) -> str:
    """A span of time in words, never longer than it is."""
    for size, unit in ((3_600, "hour"), (60, "minute")):
        if seconds >= 2 * size:
            return f"{int(seconds // size)} {unit}s"
    whole = int(seconds)
    return f"{whole} second{'' if whole == 1 else 's'}"


class ApprovalDesk:
    """The questions of one directory."""

    def __init__(
        self,
        directory: Path | None = None,
        *,
        ttl_s: float = APPROVAL_TTL_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._directory = directory or default_directory()
        self.ttl_s = min(ttl_s, APPROVAL_TTL_MAX_S)
        """Seconds that a question of ours waits, and its answer with it; those of others have their own."""
        self.console: str | None = None
        """Where a person can answer in a browser, if anywhere."""
        self._clock = clock

    @property
    def directory(self) -> Path:
        """Where questions wait. Raises `ConfigError` if nothing can be left anywhere."""
        if self._directory is None:
            raise ConfigError(NO_HOME)
        return self._directory

    def ask(self, request: ApprovalRequest) -> Waiting:
        """Leaves a question. Raises `ConfigError` if it cannot be left, `ApprovalRequired` if too many wait.

        Raises `ApprovalDenied` if its arguments cannot be shown.
        """
        call = request.call
        question = Waiting(
            id=_id_of(request.binding),
            tool=call.tool.name,
            toolset=call.tool.toolset,
            principal=call.principal,
            arguments=show_arguments(request),
            rule=request.rule,
            binding=request.binding,
            expires=int(self._clock() + self.ttl_s),
        )
        others = [item for item in self.waiting() if item.principal == call.principal and item.id != question.id]
        if len(others) >= APPROVALS_PENDING:
            raise ApprovalRequired(
                "Too many approvals are waiting for an answer. Wait for those before you ask for more."
            )
        self._write(question)
        return question

    def take(self, binding: str) -> bool:
        """Uses up an agreement to this call. Whether there was one."""
        try:
            if not self._is_private():
                return False
        except ConfigError:
            return False
        path = self.directory / f"{_id_of(binding)}{_GRANTED}"
        found = self._read(path)
        if found is None or found.binding != binding or found.expires <= self._clock():
            return False
        try:
            path.unlink()
        except OSError:
            return False
        return True

    def waiting(self) -> Sequence[Waiting]:
        """The questions without an answer, oldest first; those whose time is over are removed."""
        if not self._is_private():
            return ()
        open_questions: list[Waiting] = []
        for path in sorted(self.directory.glob(f"*{_ASKED}")) + sorted(self.directory.glob(f"*{_GRANTED}")):
            found = self._read(path)
            if found is None or found.expires <= self._clock():
                with suppress(OSError):
                    path.unlink()
            elif path.suffix == _ASKED:
                open_questions.append(found)
        return sorted(open_questions, key=lambda item: (item.expires, item.id))

    def find(self, number: str) -> Waiting | None:
        """The question of that id, if it waits."""
        return next((item for item in self.waiting() if item.id == number), None)

    def grant(self, question: Waiting) -> bool:
        """Agrees to the call, once. Whether the question still waited."""
        path = self.directory / f"{question.id}{_ASKED}"
        return self._do(lambda: path.rename(path.with_suffix(_GRANTED)))

    def refuse(self, question: Waiting) -> bool:
        """Removes the question. Whether it still waited."""
        return self._do((self.directory / f"{question.id}{_ASKED}").unlink)

    def _do(self, change: Callable[[], object]) -> bool:
        try:
            change()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise ConfigError(f"{self.directory}: cannot be written: {error.strerror or error}.") from None
        return True

    def _write(self, question: Waiting) -> None:
        target = self.directory / f"{question.id}{_ASKED}"
        temporary = target.with_suffix(f".{secrets.token_hex(4)}")
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._is_private()
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(msgspec.json.encode(question))
            temporary.replace(target)
        except OSError as error:
            raise ConfigError(f"{self.directory}: cannot be written: {error.strerror or error}.") from None

    def _read(self, path: Path) -> Waiting | None:
        try:
            with path.open("rb") as file:
                return msgspec.json.decode(file.read(_FILE_MAX_BYTES), type=Waiting)
        except (OSError, msgspec.DecodeError):
            return None

    def _is_private(self) -> bool:
        """Whether there is a directory. Raises `ConfigError` if others could have written into it."""
        if self._directory is None:
            return False
        try:
            facts = self.directory.stat()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise ConfigError(f"{self.directory}: cannot be read: {error.strerror or error}.") from None
        if not stat.S_ISDIR(facts.st_mode):
            raise ConfigError(f"{self.directory}: is no directory.")
        if os.name == "posix" and (facts.st_uid != os.geteuid() or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
            raise ConfigError(f"{self.directory}: others can write here: run `chmod 700` on it.")
        return True


def _id_of(binding: str) -> str:
    """Names one call and no other: whoever agrees to an id agrees to what was shown with it.

    A client chooses arguments, so of a short one it could make two calls that share it. It is no secret: whoever can
    write the directory can agree.
    """
    return hashlib.sha256(binding.encode()).hexdigest()[:_ID_DIGITS]
