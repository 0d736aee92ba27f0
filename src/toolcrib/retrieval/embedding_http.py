"""Talks to an OpenAI-compatible `/v1/embeddings` over the standard library: the rim of `reranker`.

Bounded in time, in bytes and in trust: redirects are refused (a redirect would carry descriptions and key to
another host), the answer is read up to a limit, and the key comes from the environment through the caller,
appears in no text and in no repr. The call runs in a worker thread, so that a slow name lookup cannot
outlive the budget.
"""

import http.client
import json
import ssl
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import closing
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import urlsplit

from toolcrib.limits import EMBEDDING_RESPONSE_MAX_BYTES
from toolcrib.retrieval.reranker import EmbeddingFailed


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
    """An `Embedder` over HTTP; close it when done."""

    __slots__ = ("_endpoint", "_workers")

    def __init__(self, endpoint: EmbeddingEndpoint) -> None:
        parts = urlsplit(endpoint.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("an embeddings endpoint needs an http or https address")
        self._endpoint = endpoint
        # Two: one query is not held up by one slow call that already ran out of its budget.
        self._workers = ThreadPoolExecutor(max_workers=2, thread_name_prefix="toolcrib-embedding")

    def close(self) -> None:
        """Lets the worker threads end."""
        self._workers.shutdown(wait=False, cancel_futures=True)

    def embed(self, texts: Sequence[str], *, budget_s: float) -> list[list[float]]:
        """One vector per text.

        Raises:
            EmbeddingFailed: nothing usable came within the budget.
        """
        future = self._workers.submit(self._ask, list(texts), budget_s)
        try:
            return future.result(timeout=budget_s)
        except FutureTimeout as error:
            future.cancel()
            raise EmbeddingFailed("out of time") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise EmbeddingFailed(type(error).__name__) from error

    def _ask(self, texts: list[str], budget_s: float) -> list[list[float]]:
        parts = urlsplit(self._endpoint.url)
        body = json.dumps({"model": self._endpoint.model, "input": texts}).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._endpoint.key:
            headers["Authorization"] = f"Bearer {self._endpoint.key}"
        if parts.scheme == "https":
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                parts.netloc, timeout=budget_s, context=ssl.create_default_context()
            )
        else:
            connection = http.client.HTTPConnection(parts.netloc, timeout=budget_s)
        try:
            connection.request("POST", parts.path or "/", body=body, headers=headers)
            with closing(connection.getresponse()) as response:
                if response.status != http.client.OK:
                    kind = "a redirect, which is refused" if 300 <= response.status < 400 else "an error"
                    raise EmbeddingFailed(f"status {response.status}: {kind}")
                raw = response.read(EMBEDDING_RESPONSE_MAX_BYTES + 1)
        finally:
            connection.close()
        if len(raw) > EMBEDDING_RESPONSE_MAX_BYTES:
            raise EmbeddingFailed("the answer is too large")
        return _vectors_in_order(raw, len(texts))


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
