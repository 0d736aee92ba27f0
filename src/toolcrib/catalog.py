"""The catalog: everything that one session may reach through the bridge, and nothing else.

It is an immutable snapshot. Search, describe, call, counts, hints and error texts all read the same one, so none of
them can know of a tool that another does not (S19). Names resolve inside it only, which is why an unknown name and
one that is out of scope cannot be told apart from here (X6).
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from weakref import ref

from toolcrib.definitions import Fingerprint, Tool, Toolset, fingerprint_of
from toolcrib.intake.naming import SEPARATOR, fold

_NEAR_NAMES_SEARCHED = 5_000
"""Names that a misspelled one is compared with: keeps the answer to a typo under about 10 ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """What a name means in a catalog."""

    tool: Tool | None
    candidates: tuple[Tool, ...] = ()
    """If the name was ambiguous or misspelled: what it may have meant."""


class Mark:
    """What a catalog is told from another one by, without keeping it.

    Reading everything that is in it takes its time, and most catalogs are compared with none but themselves: it is read
    when it is compared with another, at the latest when it goes.
    """

    __slots__ = ("__weakref__", "_catalog", "_content")

    def __init__(self, catalog: "Catalog") -> None:
        self._catalog = ref(catalog)
        self._content: int | None = None

    def settle(self, catalog: "Catalog | None") -> int | None:
        """Finds out what is in the catalog, as long as that can be done."""
        if self._content is None and catalog is not None:
            self._content = catalog.content
        return self._content

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, Mark):
            return self is other
        content = self.settle(self._catalog())
        # The collector of cycles takes a catalog without a word: what was in such a one nobody knows.
        return content is not None and content == other.settle(other._catalog())

    __hash__ = None  # pyright: ignore[reportAssignmentType] - found out when it is compared, no sooner


@dataclass(frozen=True, kw_only=True, eq=False)
class Catalog:
    """The deferrable tools of one scope."""

    toolsets: tuple[Toolset, ...]
    """Sorted by name; none of them empty."""

    def __iter__(self) -> Iterator[Tool]:
        for toolset in self.toolsets:
            yield from toolset.tools

    @cached_property
    def size(self) -> int:
        """How many tools there are: `total_available`."""
        return sum([len(toolset.tools) for toolset in self.toolsets])

    @cached_property
    def chars(self) -> int:
        """Characters of all definitions together."""
        return sum([toolset.chars for toolset in self.toolsets])

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """Digest of everything in it."""
        # Fingerprints have one length: their borders need no telling.
        return fingerprint_of("".join([toolset.fingerprint for toolset in self.toolsets]).encode())

    @property
    def mark(self) -> "Mark":
        """What tells it from another catalog of this process. Whoever keeps it does not keep the catalog."""
        known = vars(self).get("_given")
        mark = known() if known is not None else None
        if mark is None:
            mark = Mark(self)
            vars(self)["_given"] = ref(mark)
        return mark

    @cached_property
    def content(self) -> int:
        """The number behind the mark: other content, another number."""
        return sum([toolset.mark for toolset in self.toolsets])

    def __del__(self) -> None:
        # Somebody may still want to know whether the next one is the same.
        known = vars(self).get("_given")
        mark = known() if known is not None else None
        if mark is not None:
            mark.settle(self)

    def amended(self, gone: Sequence[Toolset], come: Sequence[Toolset]) -> "Catalog | None":
        """The catalog with some toolsets for others, knowing what this one knows; nothing if names do not allow it."""
        toolsets = list(self.toolsets)
        for toolset in gone:
            place = bisect_left(toolsets, toolset.name, key=_NAME)
            if toolsets[place : place + 1] != [toolset]:
                return None
            del toolsets[place]
        for toolset in come:
            place = bisect_left(toolsets, toolset.name, key=_NAME)
            if place < len(toolsets) and toolsets[place].name == toolset.name:
                return None
            toolsets.insert(place, toolset)
        catalog = Catalog(toolsets=tuple(toolsets))
        known, told = vars(self), vars(catalog)
        for what, of in _SUMS.items():
            if what in known:
                told[what] = known[what] + sum(map(of, come)) - sum(map(of, gone))
        if "unavailable" in known:
            left = {name: why for name, why in known["unavailable"].items() if name not in {each.name for each in gone}}
            told["unavailable"] = {**left, **_unavailable(come)}
        if "_by_prefix" in known and (prefixes := _exchanged(known["_by_prefix"], gone, come)) is not None:
            told["_by_prefix"] = prefixes
        return catalog

    def get(self, name: str) -> Tool | None:
        """The tool of exactly this exposed name."""
        return self._asked.get(name) or self._look_up(name)

    @cached_property
    def _asked(self) -> dict[str, Tool]:
        """Tools that somebody asked for: mostly the same ones again."""
        return {}

    def _look_up(self, name: str) -> Tool | None:
        tool = self._in_toolsets(name)
        if tool is not None:
            self._asked[name] = tool
        return tool

    def _in_toolsets(self, name: str) -> Tool | None:
        head, separator, _ = name.partition(SEPARATOR)
        if separator:
            for toolset in self._by_prefix.get(head, ()):
                tool = toolset.by_name.get(name)
                if tool is not None:
                    return tool
        for toolset in self._by_prefix.get("", ()):
            tool = toolset.by_name.get(name)
            if tool is not None:
                return tool
        return None

    @cached_property
    def unavailable(self) -> Mapping[str, str]:
        """Toolsets whose tools cannot be called now, with the reason."""
        return _unavailable(self.toolsets)

    def resolve(self, name: str) -> Resolution:
        """What the name means: exactly, by its short form, or in another case or with other separators."""
        exact = self.get(name)
        if exact is not None:
            return Resolution(tool=exact)
        for names in (self._by_leaf.get(name), self._by_folded.get(fold(name))):
            if names:
                return Resolution(tool=names[0]) if len(names) == 1 else Resolution(tool=None, candidates=names[:5])
        return Resolution(tool=None, candidates=self._near(fold(name)))

    @cached_property
    def _by_prefix(self) -> Mapping[str, Sequence[Toolset]]:
        """A prefix never holds the separator, so what stands before it says where to look."""
        alone = {toolset.prefix: (toolset,) for toolset in self.toolsets}
        if len(alone) == len(self.toolsets):
            return alone
        groups: dict[str, list[Toolset]] = defaultdict(list)
        for toolset in self.toolsets:
            groups[toolset.prefix].append(toolset)
        return groups

    @cached_property
    def _by_leaf(self) -> Mapping[str, tuple[Tool, ...]]:
        return _grouped((tool.leaf, tool) for tool in self)

    @cached_property
    def _by_folded(self) -> Mapping[str, tuple[Tool, ...]]:
        return _grouped((key, tool) for tool in self for key in _folded_forms(tool))

    def _near(self, folded: str) -> tuple[Tool, ...]:
        """Up to three tools whose name is spelled almost like this."""
        if len(folded) < 3 or self.size > _NEAR_NAMES_SEARCHED:
            return ()
        wanted = _pairs(folded)
        scored: list[tuple[float, str, Tool]] = []
        for key, tools in self._by_folded.items():
            if abs(len(key) - len(folded)) <= max(2, len(folded) // 3):
                have = _pairs(key)
                likeness = 2 * len(wanted & have) / (len(wanted) + len(have))
                if likeness >= 0.6:
                    scored.extend((-likeness, tool.name, tool) for tool in tools)
        scored.sort(key=lambda item: item[:2])
        return tuple(dict.fromkeys(tool for _, _, tool in scored))[:3]


_NAME = attrgetter("name")
_SUMS: Mapping[str, Callable[[Toolset], int]] = {
    "size": lambda toolset: len(toolset.tools),
    "chars": attrgetter("chars"),
    "content": attrgetter("mark"),
}
"""What is known of a catalog as soon as it is known of its toolsets."""


def _unavailable(toolsets: Sequence[Toolset]) -> dict[str, str]:
    return {toolset.name: toolset.unavailable for toolset in toolsets if toolset.unavailable}


def _exchanged(
    prefixes: Mapping[str, Sequence[Toolset]], gone: Sequence[Toolset], come: Sequence[Toolset]
) -> Mapping[str, Sequence[Toolset]] | None:
    """`_by_prefix` with some toolsets for others, where each has a prefix of its own."""
    exchanged = dict(prefixes)
    for toolset in gone:
        if exchanged.pop(toolset.prefix, None) != (toolset,):
            return None
    for toolset in come:
        if exchanged.setdefault(toolset.prefix, (toolset,)) != (toolset,):
            return None
    return exchanged


def _folded_forms(tool: Tool) -> set[str]:
    """`github__create_issue` is also meant by `createIssue`, `github.create_issue`, `mcp__github__create_issue`."""
    return {fold(tool.name), fold(tool.leaf), fold(tool.toolset + tool.leaf)}


def _pairs(word: str) -> set[str]:
    return {word[i : i + 2] for i in range(len(word) - 1)}


def _grouped(pairs: Iterator[tuple[str, Tool]]) -> Mapping[str, tuple[Tool, ...]]:
    groups: dict[str, list[Tool]] = defaultdict(list)
    for key, tool in pairs:
        groups[key].append(tool)
    return {key: tuple(tools) for key, tools in groups.items()}
