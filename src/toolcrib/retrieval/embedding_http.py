"""Talks to an OpenAI-compatible `/v1/embeddings` over the standard library: the rim of `reranker`.

Bounded in time, in bytes and in trust: redirects are refused (a redirect would carry descriptions and key to
another host), the answer is read up to a limit, and the key comes from the environment through the caller,
appears in no text and in no repr. The call runs in a worker thread, so that a slow name lookup cannot
outlive the budget; the thread is a daemon, so that an endpoint that hangs keeps no process alive.
"""

import http.client
import json
import ssl
import time
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import closing
from dataclasses import dataclass, field
from threading import Semaphore, Thread
from typing import cast
from urllib.parse import urlsplit

from toolcrib.limits import EMBEDDING_RESPONSE_MAX_BYTES
from toolcrib.retrieval.reranker import EmbeddingFailed

_PIECE_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingEndpoint:
    """Where and how to ask."""

    url: str
    """The address of the endpoint, for example `http://127.0.0.1:8080/v1/embeddings`."""
    model: str
    key: str | None = field(default=None, repr=False)

    @property
    def host(self) -> str:
        """The host that texts go to; `doctor` names it (D5)."""
        return urlsplit(self.url).hostname or ""


class HttpEmbedder:
    """An `Embedder` over HTTP."""

    __slots__ = ("_endpoint", "_places")

    def __init__(self, endpoint: EmbeddingEndpoint) -> None:
        parts = urlsplit(endpoint.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("an embeddings endpoint needs an http or https address")
        self._endpoint = endpoint
        # Two: one query is not held up by one slow call that already ran out of its budget.
        self._places = Semaphore(2)

    def embed(self, texts: Sequence[str], *, budget_s: float) -> list[list[float]]:
        """One vector per text.

        Raises:
            EmbeddingFailed: nothing usable came within the budget.
        """
        until = time.monotonic() + budget_s
        if not self._places.acquire(timeout=budget_s):
            raise EmbeddingFailed("out of time: others are still waited for")
        answer: Future[list[list[float]]] = Future()
        worker = Thread(target=self._work, args=(answer, list(texts), until), daemon=True, name="toolcrib-embedding")
        try:
            worker.start()
        except RuntimeError as error:
            self._places.release()
            raise EmbeddingFailed("no thread can be started") from error
        try:
            return answer.result(timeout=max(0.0, until - time.monotonic()))
        except FutureTimeout as error:
            raise EmbeddingFailed("out of time") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise EmbeddingFailed(type(error).__name__) from error

    def _work(self, answer: "Future[list[list[float]]]", texts: list[str], until: float) -> None:
        try:
            answer.set_result(self._ask(texts, until))
        # Whatever it is, whoever waits for the answer is to be told.
        except BaseException as error:
            answer.set_exception(error)
        finally:
            self._places.release()

    def _ask(self, texts: list[str], until: float) -> list[list[float]]:
        left = until - time.monotonic()
        if left <= 0:
            raise EmbeddingFailed("out of time")
        parts = urlsplit(self._endpoint.url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        body = json.dumps({"model": self._endpoint.model, "input": texts}).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._endpoint.key:
            headers["Authorization"] = f"Bearer {self._endpoint.key}"
        if parts.scheme == "https":
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                parts.netloc, timeout=left, context=ssl.create_default_context()
            )
        else:
            connection = http.client.HTTPConnection(parts.netloc, timeout=left)
        try:
            connection.request("POST", target, body=body, headers=headers)
            with closing(connection.getresponse()) as response:
                if response.status != http.client.OK:
                    kind = "a redirect, which is refused" if 300 <= response.status < 400 else "an error"
                    raise EmbeddingFailed(f"status {response.status}: {kind}")
                raw = _read(response, until)
        finally:
            connection.close()
        return _vectors_in_order(raw, len(texts))


def _read(response: http.client.HTTPResponse, until: float) -> bytes:
    """The whole answer; the timeout of a connection begins anew with each byte, so that a trickle would never end."""
    read = bytearray()
    while part := response.read1(_PIECE_BYTES):
        read += part
        if len(read) > EMBEDDING_RESPONSE_MAX_BYTES:
            raise EmbeddingFailed("the answer is too large")
        if time.monotonic() > until:
            raise EmbeddingFailed("out of time")
    return bytes(read)


def _vectors_in_order(raw: bytes, count: int) -> list[list[float]]:
    try:
        answer = cast(object, json.loads(raw))
    except (ValueError, RecursionError) as error:
        raise EmbeddingFailed("the answer is not JSON") from error
    rows = cast(dict[str, object], answer).get("data") if isinstance(answer, dict) else None
    if not isinstance(rows, list) or len(cast(list[object], rows)) != count:
        raise EmbeddingFailed("the answer has no vector for each text")
    placed: dict[int, list[float]] = {}
    for place, row in enumerate(cast(list[object], rows)):
        entry = cast(dict[str, object], row) if isinstance(row, dict) else {}
        vector, index = entry.get("embedding"), entry.get("index", place)
        if not isinstance(vector, list) or not isinstance(index, int):
            raise EmbeddingFailed("the answer has a vector in another shape")
        placed[index] = cast(list[float], vector)
    if sorted(placed) != list(range(count)):
        raise EmbeddingFailed("the answer numbers its vectors wrongly")
    return [placed[index] for index in range(count)]
