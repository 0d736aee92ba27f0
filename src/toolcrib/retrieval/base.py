"""The values that retrieval takes and gives, and the two protocols that an engine fulfils.

A `Document` is what retrieval may know of a tool: words, and nothing that could run. It carries a digest of its own
content, so that whatever an engine derives from it (terms, vectors) can be kept by content and can never be stale. A
`Ranking` says what was found *and* how sure the engine is: an empty ranking with `abstained` set is an answer (X2),
not a failure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple, Protocol, overload, runtime_checkable

from msgspec import Struct


class Document(Protocol):
    """The searchable words of one tool."""

    @property
    def key(self) -> str:
        """The exposed name; unique in an index, and the tie-breaker of equal scores."""
        ...

    @property
    def digest(self) -> str:
        """Digest of everything else: equal digests mean equal documents."""
        ...

    @property
    def leaf(self) -> str:
        """The name that the source itself uses, without any prefix."""
        ...

    @property
    def toolset(self) -> str:
        """The group that the tool belongs to, as the model sees it (`github`, not `mcp-github`)."""
        ...

    @property
    def description(self) -> str:
        """What the source says of the tool."""
        ...

    @property
    def aliases(self) -> tuple[str, ...]:
        """Words that the operator attached to the tool; used for ranking only (X8)."""
        ...

    @property
    def described(self) -> "Described":
        """All of its words at one look."""
        ...

    def inside(self) -> "Inside":
        """What the schema of the arguments says: may have to be read anew."""
        ...


class Inside(NamedTuple):
    """The searchable words of a schema."""

    parameters: tuple[str, ...] = ()
    """Names of the top-level parameters."""
    nested: str = ""
    """Bounded text of parameter descriptions, nested names and enum values."""


Described = tuple[str, str, str, str, bytes | Inside, tuple[str, ...]]
"""Key, leaf, toolset, description, what the schema says or its bytes to be read, and aliases of a document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainDocument:
    """A document whose words are all at hand."""

    key: str
    digest: str
    leaf: str
    toolset: str
    description: str
    parameters: tuple[str, ...]
    nested: str
    aliases: tuple[str, ...] = ()

    @property
    def described(self) -> "Described":
        """All of its words at one look."""
        return self.key, self.leaf, self.toolset, self.description, self.inside(), self.aliases

    def inside(self) -> Inside:
        """The words of the parameters."""
        return Inside(self.parameters, self.nested)


@dataclass(frozen=True, slots=True)
class Grouped(Sequence[Document]):
    """Documents in groups that are the same objects as long as nothing in them changed.

    Whoever compares two of these asks a few hundred groups, not every document: touching 20,000 objects costs more
    than searching them.
    """

    groups: tuple[tuple[Document, ...], ...]

    def __len__(self) -> int:
        return sum(map(len, self.groups))

    def __iter__(self) -> Iterator[Document]:
        return chain.from_iterable(self.groups)

    @overload
    def __getitem__(self, index: int) -> Document: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Document]: ...
    def __getitem__(self, index: int | slice) -> Document | Sequence[Document]:
        return tuple(self)[index]


NO_EVIDENCE: Mapping[str, float] = MappingProxyType({})


class Hit(Struct, frozen=True, gc=False):
    """One document of a ranking."""

    key: str
    score: float
    evidence: Mapping[str, float] = NO_EVIDENCE
    """What each field and stage gave to the score; filled when the search was asked to explain."""
    document: Document | None = None
    """The document itself, where the engine has it at hand: nobody has to look for it by its key."""


class Ranking(Struct, frozen=True, kw_only=True, gc=False):
    """What a search found, best first."""

    hits: tuple[Hit, ...]
    abstained: bool
    """Nothing in the index fits: `hits` is empty on purpose."""
    confidence: float
    """0 to 1: how likely the first hit is what was meant."""
    doubtful: bool = False
    """Perhaps nothing fits: the hits are what comes nearest, not sure enough to be shown without a word."""
    nearest: tuple[str, ...] = ()
    """Keys that come closest although the engine abstained; shown as such, never as hits."""
    mode: str = "lexical"
    """The engine that was applied, not the one that was configured."""
    read_as: str = ""
    """What was looked up, where that is not what was typed: without courtesies and data, misspelt words spelt anew."""


class Index(Protocol):
    """Searchable documents; immutable once built."""

    def __len__(self) -> int:
        """How many documents it holds."""
        ...

    def search(self, query: str, *, limit: int, explain: bool = False) -> Ranking:
        """Ranks the documents for `query`. Never raises, whatever the string."""
        ...


class Retriever(Protocol):
    """Builds indexes, and may keep what it derived from documents for the next one, by content only."""

    def index(self, documents: Sequence[Document]) -> Index:
        """The index of exactly these documents; their order does not matter."""
        ...


@runtime_checkable
class Settling(Protocol):
    """A retriever that makes parts of its indexes in the background."""

    def settle(self) -> None:
        """Waits until they are made."""
        ...
