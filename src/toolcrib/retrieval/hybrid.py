"""Ranks by words and by meaning together, and says when nothing fits (X1, X2).

The lexical index decides which rows exist; meaning is looked up for the same rows, so a changed document
costs one vector. When the model cannot be read, words answer alone and every ranking says so (K14).

Invariant: `Ranking.mode` names what was applied. A name always wins: meaning never outranks the tool whose
name the query is.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from toolcrib.errors import ModelUnavailable
from toolcrib.limits import (
    COMPARED_ROWS,
    JOINT_CLAUSES,
    JOINT_MOST_DOCUMENTS,
    JOINT_ROWS,
    NEAREST_NAMES,
    QUERY_MAX_CHARS,
    RESULTS_MAX_HITS,
)
from toolcrib.retrieval.base import Document, Hit, Ranking
from toolcrib.retrieval.clauses import clause_part, clauses, looked_at
from toolcrib.retrieval.cohort import Cohort
from toolcrib.retrieval.confidence import Calibration, Signals
from toolcrib.retrieval.courtesy import plainly
from toolcrib.retrieval.filling import VectorFill
from toolcrib.retrieval.fusion import FusionWeights, compared_part, fuse, together_part
from toolcrib.retrieval.languages import Languages
from toolcrib.retrieval.lexical import LexicalIndex, LexicalRetriever, Match, lift_named
from toolcrib.retrieval.pasted import without_data
from toolcrib.retrieval.selection import Scored, best_of, best_rows, select
from toolcrib.retrieval.semantic import Places, StaticModel
from toolcrib.retrieval.text import runs_of
from toolcrib.retrieval.vocabulary import Vocabulary

Floats = NDArray[np.float32]

_LEADERS = 5
"""Rows whose scores say how far the first is ahead."""


class Vectors(Protocol):
    """Documents by meaning."""

    def scores(self, query: str) -> Floats:
        """Nearness of each document to the query, in the order in which they were given."""
        ...

    def some(self, texts: Sequence[str], rows: Places) -> list[Floats]:
        """Nearness of some documents to each text, by their words alone: for the clauses of a query."""
        ...


@runtime_checkable
class Reading(Protocol):
    """Vectors of documents that are read as sentences while the index is in use."""

    @property
    def unread(self) -> int:
        """Documents that are still to be read."""
        ...

    def by_words(self, query: str) -> bool:
        """Whether this query meets the documents by their words alone."""
        ...

    def judged(self, query: str, rows: Places) -> Floats | None:
        """The log odds that each of some documents does what is asked, if that can be said; NaN for an unread one."""
        ...


class SemanticModel(Protocol):
    """What makes vectors of documents; keeps them by content."""

    def index(self, documents: Sequence[Document]) -> Vectors:
        """The documents by meaning, in this order."""
        ...


class HybridRetriever:
    """Builds hybrid indexes; reads the model when the first index is built."""

    __slots__ = (
        "_base",
        "_calibration",
        "_cohort",
        "_lexical",
        "_load",
        "_lock",
        "_model",
        "_weights",
        "unavailable",
    )

    def __init__(
        self,
        *,
        lexical: LexicalRetriever | None = None,
        load: Callable[[], SemanticModel] = StaticModel.load,
        weights: FusionWeights | None = None,
        calibration: Calibration | None = None,
    ) -> None:
        self._lexical = lexical if lexical is not None else LexicalRetriever()
        self._load = load
        self._weights = weights if weights is not None else FusionWeights()
        self._calibration = calibration if calibration is not None else Calibration()
        self._model: SemanticModel | None = None
        self._cohort: Cohort | None = None
        self._base: tuple[tuple[Document, ...], Vectors] | None = None
        self._lock = Lock()
        self.unavailable: str | None = None
        """Why the model cannot be used, if it cannot; for `doctor` and logs."""

    def index(self, documents: Sequence[Document]) -> "HybridIndex | LexicalIndex":
        """The index of exactly these documents; without a model, the lexical one."""
        lexical = self._lexical.index(documents)
        with self._lock:
            model = self._model_or_none()
            if model is None:
                return lexical
            rows = lexical.documents
            if self._base is None or self._base[0] is not rows.base:
                self._base = (rows.base, model.index(rows.base))
            added = model.index(rows.added) if rows.added else None
            few = len(lexical) <= JOINT_MOST_DOCUMENTS
            return HybridIndex(
                lexical=lexical,
                base=self._base[1],
                added=added,
                weights=self._weights,
                calibration=self._calibration,
                cohort=self._cohort,
                vocabulary=model.vocabulary if isinstance(model, StaticModel) else None,
                languages=model.languages if isinstance(model, StaticModel) else None,
                together=model.together if few and isinstance(model, StaticModel) else None,
            )

    @property
    def lacking(self) -> str | None:
        """What searches do without although the model is there, if anything; for `doctor`."""
        if not isinstance(self._model, StaticModel):
            return None
        return self._model.lacking or (None if self._cohort else "less is told to be absent: cohort.npz cannot be used")

    @property
    def fills(self) -> Sequence[VectorFill]:
        """Vectors that are made in the background for the indexes made so far."""
        readings = self._model.readings if isinstance(self._model, StaticModel) else None
        return () if readings is None else (readings,)

    def settle(self) -> None:
        """Waits until what is made in the background for the indexes made so far is there."""
        for fill in self.fills:
            fill.wait(float("inf"))

    def _model_or_none(self) -> SemanticModel | None:
        if self._model is None and self.unavailable is None:
            try:
                self._model = self._load()
                self._cohort = Cohort.load(self._model) if isinstance(self._model, StaticModel) else None
            except ModelUnavailable as error:
                self.unavailable = str(error)
        return self._model


class HybridIndex:
    """Searchable documents; immutable."""

    __slots__ = (
        "_added",
        "_alone",
        "_base",
        "_calibration",
        "_cohort",
        "_languages",
        "_lexical",
        "_read",
        "_together",
        "_vocabulary",
        "_weights",
    )

    def __init__(
        self,
        *,
        lexical: LexicalIndex,
        base: Vectors,
        added: Vectors | None,
        weights: FusionWeights,
        calibration: Calibration,
        cohort: Cohort | None,
        vocabulary: Vocabulary | None,
        languages: Languages | None,
        together: Callable[[str, Sequence[Document]], Floats | None] | None,
    ) -> None:
        self._vocabulary = vocabulary
        self._languages = languages
        self._together = together
        self._cohort = cohort
        self._lexical = lexical
        self._base = base
        self._added = added
        self._read = tuple(part for part in (base, added) if isinstance(part, Reading))
        self._weights = weights
        self._alone = weights.by_words()
        self._calibration = calibration

    def __len__(self) -> int:
        return len(self._lexical)

    def search(self, query: str, *, limit: int, explain: bool = False) -> Ranking:
        """Ranks the documents for `query`. Never raises, whatever the string."""
        limit = min(limit, RESULTS_MAX_HITS, len(self))
        if limit <= 0:
            return Ranking(hits=(), abstained=False, confidence=0.0, mode=self._mode())
        asked = self._asked(query)
        read_as = asked.text[:QUERY_MAX_CHARS] if asked.text != query else ""
        look, signals = self._seen(asked)
        match = look.match
        scores = self._lifted(look)
        found = select(best_of(scores), self._lexical.documents.get, limit=limit, rival=self._lexical.rival)
        confidence = 1.0 if match.named else round(self._calibration.confidence(signals), 4)
        if not found or (not match.named and self._calibration.abstains(signals)):
            return self._nothing(query, read_as, found, limit, confidence)
        stages = self._stages(look) if explain else {}
        hits = tuple(
            Hit(
                key=document.key,
                score=round(score, 5),
                evidence=self._evidence(asked.text, document, match, score, stages) if explain else {},
                document=document,
            )
            for score, document in found
        )
        doubtful = not match.named and self._calibration.doubts(signals)
        return Ranking(
            hits=hits, abstained=False, confidence=confidence, doubtful=doubtful, mode=self._mode(), read_as=read_as
        )

    def signals(self, query: str) -> Signals:
        """What a search for the query would see; for calibration."""
        return self._seen(self._asked(query))[1]

    def _asked(self, query: str) -> "_Asked":
        """The query without data, courtesies and slips of the pen, in English; as it was typed, if it names a tool so.

        A sentence is read by the pieces of its words, and those of a misspelt one mean something else, as do those of
        another language. A query that its own words serve better than the English ones is left as it is: these tools
        are described in its language.
        """
        plain = without_data(query if self._weights.courtesies else plainly(query))
        if plain != query and self._lexical.named(query):
            plain = query
        if self._vocabulary is None or self._lexical.named(plain):
            return _Asked(text=plain, typed=plain)
        told = None if self._languages is None else self._languages.told(plain)
        if told is not None and self._lexical.match(plain).share <= self._lexical.match(told.text).share:
            text = told.text if self._weights.courtesies else plainly(told.text)
            return _Asked(text=text, typed=plain, beside=(plain, *told.words))
        text, beside = self._lexical.respelt(plain, self._vocabulary.knows), self._english(plain)
        # What looks foreign may be misspelt: it is, if nothing foreign is left of it once it is spelt anew.
        if beside and (text == plain or self._english(text)):
            return _Asked(text=plain, typed=plain, beside=beside, by_words=True)
        return _Asked(text=text, typed=text)

    def _seen(self, asked: "_Asked") -> "tuple[_Look, Signals]":
        """A look at every row; where that does not settle whether anything fits, a closer one at the best.

        A request for several things is met by whoever does one of them, and judged as a whole by all. So where it is
        still in doubt, each clause is read with its own best row, and the best judgement counts.
        """
        query = asked.text
        look = self._look(asked)
        signals = replace(self._signals(query, look), told=asked.told)
        if self._together is None or look.match.named or not self._calibration.unsettled(signals):
            return look, signals
        rows = _leading(look.scores, JOINT_ROWS)
        judged = self._read_with(query, rows)
        if judged is None:
            return look, signals
        if np.isnan(judged).all():
            # The best rows are in another language: what was compared are others, which say nothing of these.
            return look, replace(self._signals(query, replace(look, best=None)), told=signals.told)
        look.stages["together"] = (rows, together_part(judged, self._weights, len(clauses(query))))
        look.scores[rows] += look.stages["together"][1]
        seen = replace(signals, together=float(np.nanmax(judged)))
        if self._calibration.doubts(seen):
            parts = map(self._clause_judged, clauses(query)[:JOINT_CLAUSES])
            odds = [judged, *(part for part in parts if part is not None)]
            seen = replace(signals, together=float(np.nanmax(np.concatenate(odds))))
        return look, seen

    def _read_with(self, text: str, rows: Places) -> Floats | None:
        """How well some rows do what is asked, each read together with it: NaN for one that is not in English."""
        documents = [self._lexical.documents.get(row) for row in rows.tolist()]
        return None if self._together is None else self._together(text, documents)

    def _clause_judged(self, part: str) -> Floats | None:
        """How well the best row for a clause does what it asks; nothing if no row was compared with it."""
        look = self._look(_Asked(text=part, typed=part, beside=self._english(part)))
        return None if look.best is None else self._read_with(part, _leading(look.scores, 1))

    def _english(self, query: str) -> tuple[str, ...]:
        return () if self._vocabulary is None else self._vocabulary.english(query)

    def _look(self, asked: "_Asked") -> "_Look":
        """Scores every row: words and meaning; of the best of them the clauses, too, of the best few the pieces."""
        query = asked.text
        # Asked once: tools may be read to the end while this goes on.
        by_words = self._by_words(query)
        weights = self._alone if by_words else self._weights
        match = self._lexical.match(query, asked.beside, named=asked.typed)
        meaning = self._meaning(query)
        scores = fuse(match.scores, meaning, weights)
        gone = self._lexical.postings.gone
        if len(gone):
            scores[gone] = meaning[gone] = 0.0
        clause_rows, part = self._clause_part(query, scores, weights)
        stages = {"clauses": (clause_rows, part)}
        if len(clause_rows):
            # Rows that are not looked at stay below those that are.
            added = np.full(len(scores), part.min(), dtype=np.float32)
            added[clause_rows] = part
            scores += added
            scores[gone] = 0.0
        rows = _leading(scores, COMPARED_ROWS)
        judged = None if by_words else self._judged(query, rows)
        if judged is not None:
            stages["pieces"] = (rows, compared_part(judged, self._weights, len(clauses(query))))
            scores[rows] += stages["pieces"][1]
        best = None if judged is None else float(np.nanmax(judged))
        by_words = by_words or asked.by_words
        return _Look(match=match, meaning=meaning, by_words=by_words, scores=scores, best=best, stages=stages)

    def _clause_part(self, query: str, fused: Floats, weights: FusionWeights) -> tuple[Places, Floats]:
        """The rows whose clauses are looked at, and what the clauses add to them; none for a simple query."""
        parts = clauses(query) if self._weights.clauses or self._weights.standing else ()
        rows = looked_at(fused, self._lexical.postings.gone) if parts else np.empty(0, dtype=np.intp)
        if not len(rows):
            return rows, np.empty(0, dtype=np.float32)
        words = [self._lexical.word_scores(part)[rows] for part in parts]
        whole, *near = self._some((query, *parts), rows)
        return rows, clause_part(words, near, whole, weights)

    def _signals(self, query: str, look: "_Look") -> Signals:
        match, scores = look.match, look.scores
        nearest = float(look.meaning.max(initial=0.0))
        few = min(_LEADERS, len(scores))
        best = scores[best_rows(scores, few)]
        return Signals(
            nearest=nearest,
            # Where no tool was compared another line counts, which knows the centres alone; it abstains less.
            elsewhere=nearest if self._cohort is None else self._cohort.nearness(query, by_words=look.best is None),
            words=match.share,
            # Rows that are gone stand at 0; so does, here, what is farther than nothing.
            lead=float(best.max() - best.min() if len(best) >= few else scores.max()),
            # Neither translations nor the parts of unspaced scripts make a query say more.
            length=math.log1p(min(sum(word.telling for word in match.words), len(runs_of(query[:QUERY_MAX_CHARS])))),
            by_words=look.by_words,
            compared=look.best,
            tools=len(self),
        )

    def _by_words(self, query: str) -> bool:
        """Whether this query meets tools by its words alone."""
        return any(part.by_words(query) for part in self._read)

    def _weights_of(self, query: str) -> FusionWeights:
        return self._alone if self._by_words(query) else self._weights

    def _meaning(self, query: str) -> Floats:
        scores = self._base.scores(query)
        return scores if self._added is None else np.concatenate((scores, self._added.scores(query)))

    def _some(self, texts: Sequence[str], rows: Places) -> list[Floats]:
        """Nearness of some rows to each text, in their order, which is ascending."""
        if self._added is None:
            return self._base.some(texts, rows)
        here, there = self._parted(rows)
        pairs = zip(self._base.some(texts, here), self._added.some(texts, there), strict=True)
        return [np.concatenate(pair) for pair in pairs]

    def _judged(self, query: str, rows: Places) -> Floats | None:
        """How well some rows do what is asked, in their order, which is ascending; nothing if that cannot be said."""
        if not len(rows) or not self._weights.compared or len(self._read) < 1 + (self._added is not None):
            return None
        here, there = self._parted(rows)
        parts = [part.judged(query, own) for part, own in zip(self._read, (here, there), strict=False)]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        judged = np.concatenate(known)
        return None if np.isnan(judged).all() else judged

    def _parted(self, rows: Places) -> tuple[Places, Places]:
        """Rows of the base, and rows that were added, each by its own count."""
        size = len(self._lexical.documents.base)
        place = int(np.searchsorted(rows, size))
        return rows[:place], rows[place:] - size

    def _mode(self) -> str:
        """What this search was done with."""
        unread = sum(part.unread for part in self._read)
        return f"hybrid ({len(self) - unread} of {len(self)} tools read)" if unread else "hybrid"

    def _nothing(self, query: str, read_as: str, found: Sequence[Scored], limit: int, confidence: float) -> Ranking:
        for text in filter(None, (query, read_as)):
            hits = self._lexical.by_substring(text, limit).hits
            if hits:
                return Ranking(hits=hits, abstained=False, confidence=0.5, mode="substring", read_as=read_as)
        return Ranking(
            hits=(),
            abstained=True,
            confidence=round(confidence, 4),
            nearest=tuple(document.key for _, document in found[:NEAREST_NAMES]),
            mode=self._mode(),
            read_as=read_as,
        )

    def _lifted(self, look: "_Look") -> Floats:
        """The scores with rows whose name the query is above all others."""
        named = np.array(list(look.match.named), dtype=np.intp)
        before = look.scores[named]
        scores = lift_named(look.scores, look.match.named)
        look.stages["exact_name"] = (named, scores[named] - before)
        return scores

    def _stages(self, look: "_Look") -> dict[str, dict[str, float]]:
        """What each stage but the words and the meaning gave, by the document's key."""
        documents = self._lexical.documents
        return {
            name: {documents.get(row).key: value for row, value in zip(rows.tolist(), parts.tolist(), strict=True)}
            for name, (rows, parts) in look.stages.items()
        }

    def _evidence(
        self, query: str, document: Document, match: Match, score: float, stages: dict[str, dict[str, float]]
    ) -> dict[str, float]:
        weights = self._weights_of(query)
        parts = self._lexical.evidence(document, match.words, None)
        evidence = {name: round(value * weights.words, 4) for name, value in parts.items()}
        evidence |= {name: round(values.get(document.key, 0.0), 4) for name, values in stages.items()}
        evidence["meaning"] = round(score - sum(evidence.values()), 4)
        return {name: value for name, value in evidence.items() if value or name == "meaning"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A query as it is looked up."""

    text: str
    """What is read: English, word by word, if it was asked in another language that is known."""
    typed: str
    """What may be the name of a tool."""
    beside: tuple[str, ...] = ()
    """What means the same and is looked up by its words alone."""
    by_words: bool = False
    """Whether it is looked up by single words, some of them said in English: its language is not known."""

    @property
    def told(self) -> bool:
        """Whether it was asked in another language."""
        return self.text != self.typed


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What one search saw."""

    match: Match
    meaning: Floats
    by_words: bool
    """Whether the query met tools by its words alone."""
    scores: Floats
    best: float | None
    """The best log odds that a row does what is asked, if any was compared."""
    stages: dict[str, tuple[Places, Floats]]
    """What further stages gave, and to which rows."""


def _leading(scores: Floats, count: int) -> Places:
    """The rows that are looked at again, in ascending order."""
    rows = best_rows(scores, count)
    if len(rows) > 2 * count:
        # So many are alike at the edge that to look at all costs more than it tells; which of them would be chance.
        values = scores[rows]
        rows = rows[values > values.min()]
    return rows
