"""Fills in the vectors of tools in the background, and says how far it is.

One thread opens the reader and the file of vectors, reads what is missing in small batches, and ends when nothing is
left; nobody waits for it. Until a vector is there the caller does without it. A fill may be told to make a few vectors
at once, in the thread that asks. A failure is kept and reported once; it never raises into a search and is never
silent.
"""

import atexit
import hashlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from threading import Condition, Thread
from typing import Protocol
from weakref import finalize

from toolcrib.errors import ModelUnavailable
from toolcrib.limits import (
    FILL_BATCH_TEXTS,
    FILL_KEPT_VECTORS,
    FILL_SAVE_AT_ONCE,
    FILL_SAVE_EVERY_S,
    FILL_STOP_S,
)
from toolcrib.retrieval.vector_file import DIGEST_BYTES, VectorFile

logger = logging.getLogger("toolcrib")


class Reader(Protocol):
    """Makes a record of a text: its vector, and what else is kept of it."""

    def read(self, text: str) -> bytes:
        """The record of a text; all records of a reader are of one length."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FillState:
    """How far the vectors are; what progress shows."""

    loaded: bool = False
    """Whether the reader is there."""
    done: int = 0
    wanted: int = 0
    failure: str | None = None

    @property
    def settled(self) -> bool:
        """Whether waiting longer changes nothing."""
        return self.failure is not None or (self.loaded and self.done >= self.wanted)


class VectorFill:
    """The vectors of texts, and the thread that makes them."""

    def __init__(
        self,
        *,
        load: Callable[[], Reader],
        file: VectorFile | None = None,
        clock: Callable[[], float] = time.monotonic,
        most: int = FILL_KEPT_VECTORS,
        at_once: int = 0,
        what: str = "the reader",
    ) -> None:
        self._load = load
        self._at_once = at_once
        """Missing vectors up to which whoever asks for them makes them."""
        self._what = what
        """Whose failure it is."""
        self._file = file
        self._clock = clock
        self._most = most
        self._reader: Reader | None = None
        self._failure: str | None = None
        self._vectors: dict[bytes, bytes] = {}
        self._unsaved: dict[bytes, bytes] = {}
        # A few vectors are written when nobody needs them any more, at the latest when the process ends: so a tool that
        # changes does not have the whole file written each time.
        finalize(self, _write, file, self._unsaved)
        self._wanted: dict[bytes, str] = {}
        """What is still to be read, first asked first made."""
        self._asked = 0
        self._thread: Thread | None = None
        self._stopping = False
        self._changed = Condition()
        self.version = 0
        """Grows whenever a vector came."""

    @property
    def state(self) -> FillState:
        """How far it is."""
        with self._changed:
            return self._state()

    def want(self, texts: Sequence[str]) -> tuple[bytes, ...]:
        """Asks for the vectors of these texts; the digests under which they will be found."""
        digests = tuple(map(text_digest, texts))
        if self._at_once and self._reader is None and self._failure is None:
            self._guarded(self._open)
        missing = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in self._vectors}
        if 0 < len(missing) <= self._at_once and self._failure is None:
            self._guarded(partial(self._make, missing))
        with self._changed:
            before = len(self._wanted)
            for digest, text in missing.items():
                if digest not in self._vectors and len(self._wanted) < self._most:
                    self._wanted.setdefault(digest, text)
            self._asked += len(self._wanted) - before
            self._start()
        return digests

    def record(self, digest: bytes) -> bytes | None:
        """The record of a text, if it is there."""
        return self._vectors.get(digest)

    def wait(self, seconds: float, heard: Callable[[FillState], None] = lambda state: None) -> FillState:
        """Waits until everything is there, but no longer than this; `heard` is told of progress."""
        ends = self._clock() + seconds
        while True:
            with self._changed:
                state = self._state()
                left = ends - self._clock()
                if not state.settled and left > 0:
                    self._changed.wait(min(left, 1.0))
                    state = self._state()
            heard(state)
            if state.settled or left <= 0:
                return state

    def close(self) -> None:
        """Ends the thread after the text that it is at, and keeps what it made."""
        with self._changed:
            self._stopping = True
            thread = self._thread
        if thread is not None:
            thread.join(FILL_STOP_S)
        self._save()
        atexit.unregister(self.close)

    def _state(self) -> FillState:
        return FillState(
            loaded=self._reader is not None,
            done=self._asked - len(self._wanted),
            wanted=self._asked,
            failure=self._failure,
        )

    def _start(self) -> None:
        busy = self._thread is not None
        idle = self._reader is not None and not self._wanted and len(self._unsaved) < FILL_SAVE_AT_ONCE
        if not busy and not idle and not self._stopping and self._failure is None:
            self._thread = Thread(target=self._work, daemon=True, name="toolcrib-reading")
            # A library that is torn down while it computes can bring the process down with it.
            atexit.register(self.close)
            try:
                self._thread.start()
            except RuntimeError:  # no thread to be had
                self._ended()
                if self._wanted:
                    self._fail(f"{self._what} got no thread to work in")

    def _work(self) -> None:
        self._guarded(self._fill)

    def _fill(self) -> None:
        if self._reader is None:
            self._open()
        while not self._is_done():
            self._read_wanted()
            self._save()

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
            return
        except ModelUnavailable as error:
            reason = str(error)
        # Whatever it is, search goes on without it and says so.
        except Exception as error:
            reason = self._failed(error)
        self._save()
        self._fail(reason)

    def _failed(self, error: Exception) -> str:
        return f"{self._what} failed ({type(error).__name__})"

    def _is_done(self) -> bool:
        with self._changed:
            done = self._stopping or not (self._wanted or len(self._unsaved) >= FILL_SAVE_AT_ONCE)
            if done:
                # Decided under the lock: whoever wants more from now on starts a new thread.
                self._ended()
            return done

    def _ended(self) -> None:
        self._thread = None
        # Nobody is kept alive by a thread that is over.
        atexit.unregister(self.close)

    def _open(self) -> None:
        stored = self._file.read() if self._file is not None else {}
        reader = self._load()
        with self._changed:
            self._vectors.update(stored)
            for digest in stored.keys() & self._wanted.keys():
                del self._wanted[digest]
            self._reader = reader
            self.version += 1
            self._changed.notify_all()

    def _make(self, texts: Mapping[bytes, str]) -> None:
        for digest, text in texts.items():
            self._keep(digest, self._require().read(text))
        with self._changed:
            self.version += 1

    def _read_wanted(self) -> None:
        saved_at = self._clock()
        while batch := self._next_batch():
            for digest, text in batch:
                if self._stopping:
                    return
                self._keep(digest, self._require().read(text))
            with self._changed:
                self.version += 1
                self._changed.notify_all()
            if self._clock() - saved_at >= FILL_SAVE_EVERY_S:
                self._save()
                saved_at = self._clock()

    def _next_batch(self) -> list[tuple[bytes, str]]:
        with self._changed:
            return list(islice(self._wanted.items(), FILL_BATCH_TEXTS)) if not self._stopping else []

    def _keep(self, digest: bytes, vector: bytes) -> None:
        with self._changed:
            while len(self._vectors) >= self._most:
                del self._vectors[next(iter(self._vectors))]
            self._vectors[digest] = vector
            if self._file is not None:
                self._unsaved[digest] = vector
            self._wanted.pop(digest, None)

    def _save(self) -> None:
        with self._changed:
            made = dict(self._unsaved)
            self._unsaved.clear()
        if not _write(self._file, made):
            self._file = None

    def _fail(self, reason: str) -> None:
        if self._failure is None:
            logger.warning("%s; search answers with the static table alone", reason.rstrip("."))
        with self._changed:
            self._failure = self._failure or reason
            self._ended()
            self._changed.notify_all()

    def _require(self) -> Reader:
        if self._reader is None:
            raise ModelUnavailable(f"{self._what} is not there yet")
        return self._reader


def _write(file: VectorFile | None, vectors: Mapping[bytes, bytes]) -> bool:
    """Adds vectors to the file, if there is one; whether that could be done."""
    if file is None or not vectors:
        return True
    try:
        file.write(vectors)
    except OSError as error:
        logger.warning(
            "the vectors of tools cannot be kept in %s (%s); they are made again at the next start",
            file.path,
            error.strerror or type(error).__name__,
        )
        return False
    return True


def text_digest(text: str) -> bytes:
    """What a vector is kept under."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()
