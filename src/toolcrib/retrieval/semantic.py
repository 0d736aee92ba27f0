"""Decides how near a query and a tool are in meaning, with word vectors that ship in this package.

A text is the weighted sum of its word vectors, brought to length one; nearness is the cosine. Queries and tools are
also read as sentences (`sentences`): a query when it is asked, a tool once, and both vectors are added up; what was
read also lets some of the tools be compared with the query piece by piece (`comparing`). An index whose tools are not
all read yet answers by their words. There is no network, no library but numpy and no work at
import: the table is read at the first `StaticModel.load`.

Invariant: every vector has length one or is all zero, never NaN, whatever the text. A missing or damaged
table is a `ModelUnavailable`, which the caller answers with lexical search, visibly (K14).
"""

import json
import logging
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from toolcrib.errors import ModelUnavailable
from toolcrib.limits import (
    JOINT_TOOL_CHARS,
    QUERY_MAX_CHARS,
    READER_AT_ONCE,
    READER_TOOL_CHARS,
    READER_TOOL_PIECES,
    SEMANTIC_CACHED_DOCUMENTS,
    SEMANTIC_CACHED_QUERIES,
    SEMANTIC_EXACT_DOCUMENTS,
    SEMANTIC_FIELD_MAX_CHARS,
    SEMANTIC_FIELD_MAX_ROWS,
    SEMANTIC_REFINED_DOCUMENTS,
)
from toolcrib.retrieval.base import Document
from toolcrib.retrieval.comparing import Comparer
from toolcrib.retrieval.dictionaries import Dictionaries
from toolcrib.retrieval.filling import VectorFill
from toolcrib.retrieval.joint import JointReader
from toolcrib.retrieval.languages import Languages
from toolcrib.retrieval.products import CodedVectors
from toolcrib.retrieval.sentences import SentenceReader
from toolcrib.retrieval.text import in_words
from toolcrib.retrieval.vector_file import VectorFile
from toolcrib.retrieval.vectors import MODEL_DIRECTORY, Codes, Floats, read_arrays, unit, whole
from toolcrib.retrieval.vocabulary import Bridge, Vocabulary

logger = logging.getLogger("toolcrib")

Places: TypeAlias = NDArray[np.intp]

_TABLE = "table.npz"
_BRIDGE = "bridge.npz"
_FORMAT = 1
_NOT_JOINT = "doubtful hits are not read together with the query"
_COARSE_DIMENSIONS = 64
"""Leading dimensions, all that the first look at a large index uses; the table is rotated to suit."""

READER_SHARE = 0.75
"""What the sentence says of a query's vector if all of its words are known, the rest being its words'; chosen as the
weights below."""
READ_WEIGHT = 0.8
"""What the sentence says of a tool's vector, beside 1.0 for its words."""
KNOWN_SHARE = 0.5
"""From this share of known words on, a query is read as a sentence: what is left of fewer is none."""
FOREIGN_SHARE = 0.2
"""From this share of foreign words on, a query is not read as a sentence: that takes English; words have a bridge."""

_WRITTEN = "3"
"""Which way of writing a tool down, and of telling whether it is English; what was read in another is read again."""

# How much each part of a document says about it; chosen on the macro mean of the development sets.
_LEAF, _TOOLSET, _DESCRIPTION, _PARAMETERS, _ALIASES = 0.8, 0.35, 1.0, 0.3, 0.6


@dataclass(slots=True, kw_only=True)
class StaticModel:
    """The table, and the document vectors that were already made with it."""

    vocabulary: Vocabulary
    codes: Codes
    """One row per word, as whole numbers."""
    scales: Floats
    """What one unit of each row's numbers is worth."""
    version: str
    reader: SentenceReader | None
    """Reads sentences; `None` if it cannot be used."""
    languages: Languages | None = None
    """Says in English what is asked in another language; `None` if it cannot be used."""
    comparer: Comparer | None = None
    """Compares what was read; `None` if it cannot be used."""
    joint: "JointFile | None" = None
    """Reads what is doubtful together with the query; `None` if it cannot be used."""
    lacking: str | None = None
    """What a part that cannot be used costs, and why it cannot."""
    readings: VectorFill | None = None
    """Tools as sentences; `None` without a reader."""
    _cache: dict[str, bytes] = field(default_factory=dict[str, bytes])
    _queries: dict[str, "_Asked"] = field(default_factory=dict[str, "_Asked"])

    @classmethod
    def load(cls, directory: Path = MODEL_DIRECTORY, *, kept: Path | None = None) -> "StaticModel":
        """Reads the table. `kept` is a folder in which the vectors of tools that were read are kept for the next start.

        Raises:
            ModelUnavailable: a file is missing, damaged or of another format.
        """
        arrays = read_arrays(directory / _TABLE)
        try:
            meta = json.loads(bytes(arrays["meta"]))
            tokens = bytes(arrays["tokens"]).decode().split("\n")
            codes = np.ascontiguousarray(arrays["codes"], dtype=np.int8)
            scales = arrays["scales"].astype(np.float32)
            version = str(meta["version"])
        except (KeyError, ValueError, TypeError) as error:
            raise ModelUnavailable(f"the embedding table is damaged: {error}") from error
        if meta.get("format") != _FORMAT or codes.ndim != 2 or not len(tokens) == len(codes) == len(scales):
            raise ModelUnavailable("the embedding table has a format that this release does not read")
        vocabulary = Vocabulary.of(tokens, _bridge_loader(directory, len(tokens)))
        model = cls(vocabulary=vocabulary, codes=codes, scales=scales, version=version, reader=None)
        try:
            reader = SentenceReader.load(model.mark, directory)
        except ModelUnavailable as error:
            model.lacks("queries and tools are read word by word", error)
            return model
        model.reader = reader
        try:
            model.languages = Languages(Dictionaries.load(directory), vocabulary)
        except ModelUnavailable as error:
            model.lacks("queries in other languages are read word by word", error)
        try:
            model.comparer = Comparer.load(reader.mark, directory)
        except ModelUnavailable as error:
            model.lacks("the best hits are not compared with the query", error)
        try:
            JointReader.check(reader, directory)
            model.joint = JointFile(reader, directory)
        except ModelUnavailable as error:
            model.lacks(_NOT_JOINT, error)
        reads = _ToolReader(reader, model.comparer, vocabulary)
        file = VectorFile(kept / f"{reads.mark}.vectors", size=reads.record_bytes) if kept is not None else None
        model.readings = VectorFill(load=lambda: reads, file=file, at_once=READER_AT_ONCE, what="the sentence reader")
        return model

    @property
    def dimensions(self) -> int:
        """Numbers per vector."""
        return self.codes.shape[1]

    @property
    def mark(self) -> str:
        """What tells one table of word vectors from another, even if both carry the same version."""
        return f"{self.version}:{zlib.crc32(self.scales.tobytes()):08x}"

    def point(self, query: str) -> Floats:
        """Where the tools for a query lie, by its words and as a sentence; all zero when no word means anything."""
        return self._asked(query).vector

    def pieces(self, query: str) -> Floats | None:
        """What tools are compared with; nothing for a query that is not read as a sentence."""
        return self._asked(query).pieces

    def together(self, query: str, documents: Sequence[Document]) -> Floats | None:
        """How well some documents do what is asked, each read together with the query (`joint`).

        NaN for a document that is not in English; nothing if there is no joint reader.
        """
        joint = self._joint_reader()
        if joint is None:
            return None
        texts = [joint_text(document) for document in documents]
        english = np.array([_is_readable(text, self.vocabulary) for text in texts], dtype=bool)
        judged = np.full(len(texts), np.nan, dtype=np.float32)
        read = [text for text, is_english in zip(texts, english.tolist(), strict=True) if is_english]
        judged[english] = joint.judged(query[:QUERY_MAX_CHARS], read)
        return judged

    def _joint_reader(self) -> JointReader | None:
        try:
            return None if self.joint is None else self.joint.read()
        except ModelUnavailable as error:
            self.joint = None
            self.lacks(_NOT_JOINT, error)
            return None

    def lacks(self, cost: str, error: ModelUnavailable) -> None:
        """Says what a missing part costs; the first of them is what `doctor` shows."""
        said = f"{cost}: {error}"
        self.lacking = self.lacking or said
        logger.warning("%s; install toolcrib again", said)

    def _asked(self, query: str) -> "_Asked":
        query = query[:QUERY_MAX_CHARS]  # more of it is not read, and would be kept
        kept = self._queries.get(query)
        if kept is None:
            kept = self._read(query)
            if len(self._queries) >= SEMANTIC_CACHED_QUERIES:
                self._queries.clear()
            self._queries[query] = kept
        return kept

    def _read(self, query: str) -> "_Asked":
        words = self.embed_query(query)
        if self.reader is None or not _is_readable(query, self.vocabulary):
            return _Asked(words, None)
        known = self.vocabulary.known_share(query)
        sentence = self.reader.read(query[:QUERY_MAX_CHARS])
        # A misspelt word has pieces that mean something else, and leads the sentence astray.
        share = np.float32(READER_SHARE * known)
        mixed = words * (np.float32(1.0) - share)
        mixed += sentence.vector * share
        return _Asked(unit(mixed), None if self.comparer is None else self.comparer.asked.pieces(sentence.states))

    def reads(self, query: str) -> bool:
        """Whether a query is read as a sentence; if not, its words meet those of the tools."""
        return self.reader is not None and _is_readable(query, self.vocabulary)

    def embed_query(self, text: str) -> Floats:
        """The vector of a query by its words alone; all zero when none of them means anything here."""
        rows = self.vocabulary.rows(text[:QUERY_MAX_CHARS], at_most=SEMANTIC_FIELD_MAX_ROWS)
        return unit(self._sum(rows))

    def embed_documents(self, documents: Sequence[Document]) -> Codes:
        """One row per document, in whole numbers of no fixed scale; `unit` brings them to length one."""
        made = np.empty((len(documents), self.dimensions), dtype=np.int8)
        for place, document in enumerate(documents):
            kept = self._cache.get(document.digest)
            if kept is None:
                kept = self._keep(document.digest, whole(self._sum(self._composed(document))).tobytes())
            made[place] = np.frombuffer(kept, dtype=np.int8)
        return made

    def index(self, documents: Sequence[Document]) -> "SemanticIndex":
        """An index of exactly these documents, in this order."""
        return SemanticIndex(self, documents)

    def _keep(self, digest: str, vector: bytes) -> bytes:
        if len(self._cache) >= SEMANTIC_CACHED_DOCUMENTS:
            self._cache.clear()
        self._cache[digest] = vector
        return vector

    def _composed(self, document: Document) -> list[tuple[int, float]]:
        fields = (
            (_LEAF, document.leaf),
            (_TOOLSET, document.toolset),
            (_DESCRIPTION, document.description),
            (_PARAMETERS, " ".join(document.inside().parameters[:20])),
            (_ALIASES, " ".join(document.aliases)),
        )
        composed: list[tuple[int, float]] = []
        for importance, text in fields:
            rows = self.vocabulary.rows(text[:SEMANTIC_FIELD_MAX_CHARS], at_most=SEMANTIC_FIELD_MAX_ROWS)
            if rows:
                # Divided by the square root: a long text counts for more than a short one, not in proportion.
                share = importance / len(rows) ** 0.5
                composed += [(row, weight * share) for row, weight in rows]
        return composed

    def _sum(self, rows: Sequence[tuple[int, float]]) -> Floats:
        if not rows:
            return np.zeros(self.dimensions, dtype=np.float32)
        numbers, shares = zip(*rows, strict=True)
        places = np.array(numbers, dtype=np.intp)
        weights = np.array(shares, dtype=np.float32)
        weights *= self.scales[places]
        return np.asarray(weights @ self.codes[places].astype(np.float32), dtype=np.float32)


class SemanticIndex:
    """Vectors of documents: by their words from the start, and by their sentences too once all of them are read."""

    __slots__ = ("_by_words", "_digests", "_lock", "_missing", "_model", "_records", "_seen", "_vectors")

    def __init__(self, model: StaticModel, documents: Sequence[Document]) -> None:
        self._model = model
        self._by_words = self._vectors = _Layered.of(CodedVectors.of(model.embed_documents(documents)))
        self._digests: Sequence[bytes] = ()
        if model.readings is not None:
            self._digests = model.readings.want(list(map(tool_text, documents)))
        self._missing = self._digests
        self._records: Sequence[bytes] = ()
        self._seen = -1
        self._lock = Lock()

    def __len__(self) -> int:
        """How many documents it holds."""
        return len(self._by_words.all)

    @property
    def unread(self) -> int:
        """Documents that are still to be read as sentences."""
        readings = self._model.readings
        if self._missing and readings is not None and self._seen != readings.version:
            with self._lock:
                self._take(readings)
        return len(self._missing)

    @property
    def codes(self) -> Codes:
        """One row per document, of no fixed scale."""
        return self._by_words.all.codes if self.unread else self._vectors.all.codes

    def scores(self, query: str) -> Floats:
        """Nearness of each document to the query, -1 to 1, in the order in which they were given.

        Beyond `SEMANTIC_EXACT_DOCUMENTS` documents only the nearest are exact; the others are estimates.
        """
        vectors = self._by_words if self.by_words(query) else self._vectors
        return vectors.near(self._model.point(query))

    def by_words(self, query: str) -> bool:
        """Whether this query meets the documents by their words alone: it is no sentence, or not all of them are read.

        Some that are read beside others that are not could not be compared.
        """
        return self._model.readings is None or self.unread > 0 or not self._model.reads(query)

    def some(self, texts: Sequence[str], rows: Places) -> list[Floats]:
        """Nearness of some documents to each of the texts, exactly, by their words alone."""
        vectors = self._by_words.all.some(rows)
        return [vectors.near(self._model.embed_query(text)) for text in texts]

    def judged(self, query: str, rows: Places) -> Floats | None:
        """How well some documents do what is asked (`comparing`); nothing if the query meets them by words alone."""
        pieces = self._model.pieces(query)
        if pieces is None or self._model.comparer is None or self._model.readings is None or self.by_words(query):
            return None
        places: list[int] = rows.tolist()
        records = [self._records[place][self._model.dimensions :] for place in places]
        return self._model.comparer.judged(pieces, b"".join(records))

    def _take(self, readings: VectorFill) -> None:
        """Looks what has been read since the last look; takes it over once that is everything."""
        seen = readings.version
        missing = [digest for digest in self._missing if readings.record(digest) is None]
        if not missing:
            records = [readings.record(digest) for digest in self._digests]
            missing = [digest for digest, made in zip(self._digests, records, strict=True) if made is None]
            if not missing:
                # Kept here, too: the fill lets the oldest go.
                self._records = [made for made in records if made is not None]
                vectors = b"".join([made[: self._model.dimensions] for made in self._records])
                read = np.frombuffer(vectors, dtype=np.int8).reshape(len(records), -1)
                self._vectors = _Layered.of(CodedVectors.of(_both(self._by_words.all.codes, read)))
        self._missing, self._seen = missing, seen


@dataclass(frozen=True, slots=True)
class _Layered:
    """Vectors, and for a first look at many of them their leading dimensions."""

    all: CodedVectors
    coarse: CodedVectors | None

    @classmethod
    def of(cls, vectors: CodedVectors) -> "_Layered":
        large = len(vectors) > SEMANTIC_EXACT_DOCUMENTS
        return cls(vectors, vectors.leading(_COARSE_DIMENSIONS) if large else None)

    def near(self, vector: Floats) -> Floats:
        if self.coarse is None:
            return self.all.near(vector)
        scores = self.coarse.near(vector[:_COARSE_DIMENSIONS])
        nearest = np.argpartition(scores, -SEMANTIC_REFINED_DOCUMENTS)[-SEMANTIC_REFINED_DOCUMENTS:]
        scores[nearest] = self.all.some(nearest).near(vector)
        return scores


class JointFile:
    """The joint reader, read when it is first needed: most processes never are in doubt, and it takes 12 MB."""

    __slots__ = ("_directory", "_lock", "_read", "_reader")

    def __init__(self, reader: SentenceReader, directory: Path) -> None:
        self._reader, self._directory = reader, directory
        self._read: JointReader | None = None
        self._lock = Lock()

    def read(self) -> JointReader:
        """The joint reader.

        Raises:
            ModelUnavailable: the file is damaged, or gone since it was looked for.
        """
        with self._lock:
            if self._read is None:
                self._read = JointReader.load(self._reader, self._directory)
            return self._read


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is made of a query."""

    vector: Floats
    pieces: Floats | None


@dataclass(frozen=True, slots=True)
class _ToolReader:
    """Reads tools that are written in English; of any other the sentence says nothing."""

    reader: SentenceReader
    comparer: Comparer | None
    vocabulary: Vocabulary

    @property
    def mark(self) -> str:
        """What tells its records from those of others."""
        parts = (self.reader.mark, *([] if self.comparer is None else [self.comparer.mark]), _WRITTEN)
        return "-".join(parts)

    @property
    def record_bytes(self) -> int:
        return self.reader.points.columns + (0 if self.comparer is None else self.comparer.record_bytes)

    def read(self, text: str) -> bytes:
        """The vector of a tool in whole numbers, and its pieces."""
        if not _is_readable(text, self.vocabulary):
            return bytes(self.record_bytes)
        sentence = self.reader.read(text, at_most=READER_TOOL_PIECES)
        vector = whole(sentence.vector).tobytes()
        return vector if self.comparer is None else vector + self.comparer.record(sentence.states)


def tool_text(document: Document) -> str:
    """What of a tool is read as a sentence: its name in words, and how its description begins."""
    return _begun(document, READER_TOOL_CHARS)


def joint_text(document: Document) -> str:
    """What of a tool is read together with a query."""
    return _begun(document, JOINT_TOOL_CHARS)


def _begun(document: Document, chars: int) -> str:
    return f"{in_words(document.leaf)}: {document.description[:chars]}"


def _is_readable(text: str, vocabulary: Vocabulary) -> bool:
    return vocabulary.known_share(text) >= KNOWN_SHARE and vocabulary.foreign_share(text) < FOREIGN_SHARE


def _both(words: Codes, read: Codes) -> Codes:
    """Tools by their words and by their sentences."""
    both = unit(read)
    both *= READ_WEIGHT
    both += unit(words)
    return whole(both)


def _bridge_loader(directory: Path, rows: int) -> Callable[[], Bridge]:
    # Read and checked at once, so that nothing can fail later; put together when a text first needs it.
    arrays = read_arrays(directory / _BRIDGE)
    try:
        words = bytes(arrays["words"]).decode()
        targets = arrays["rows"].astype(np.uint16)
        shares = arrays["weights"].astype(np.uint8)
    except (KeyError, ValueError) as error:
        raise ModelUnavailable(f"the bridge to other languages is damaged: {error}") from error
    count = words.count("\n") + 1
    if not count == len(targets) == len(shares) or bool((targets[shares > 0] >= rows).any()):
        raise ModelUnavailable("the bridge to other languages does not belong to the table")
    return lambda: Bridge.of(words.split("\n"), targets, shares)
