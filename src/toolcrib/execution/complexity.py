"""How much work a schema can make a validator do, before it is allowed to do any.

A few hundred bytes of `$ref`s that refer twice to the next one double the work at every level, and no validator can
be interrupted from outside. So the work is counted first, following references as a validator would, and a schema
that exceeds the budget is not checked at all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from toolcrib.definitions import Json

WORK_MAX = 1_000_000
"""Subschema visits that one validation may cost: about 100 ms."""
_WORK_FOR_ALL_MAX = 10 * WORK_MAX
"""The same for all values of the arguments, each of which may cost as many, though hardly ever does."""
_FEW_VISITS = 100
_DEPTH_MAX = 300
_MEANINGS_MAX = 64
"""Places that one reference may mean."""
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas", "dependencies"})
"""Keywords that hold schemas by names, which may be those of keywords."""
_NOT_VISITED = frozenset({"$defs", "definitions", "const", "enum", "default", "examples", "example"})
"""Definitions are visited where something refers to them, not where they stand; values are no schemas."""


@dataclass(frozen=True, slots=True)
class Work:
    """What one pass through a schema costs."""

    visits: int
    """Subschemas visited, references followed once."""
    recursions: int
    """References that lead back into themselves: each level of the arguments may repeat the pass so often."""

    @property
    def is_plain(self) -> bool:
        """Whether it is so little that how many values the arguments have matters as little."""
        return self.visits <= _FEW_VISITS

    def allows(self, depth: int, values: int = 1) -> bool:
        """Whether arguments nested so deeply, of so many values, can be checked within the budget."""
        if self.visits > WORK_MAX or (not self.is_plain and self.visits * values > _WORK_FOR_ALL_MAX):
            return False
        return self.recursions <= 1 or self.visits * self.recursions ** min(depth, 64) <= WORK_MAX


_TOO_MUCH = Work(WORK_MAX + 1, 0)


def measure_work(schema: Mapping[str, Json]) -> Work:
    """The work of a schema; saturates above the budget."""
    return _Measure(schema).visit(schema, 0)


class _Measure:
    def __init__(self, root: Mapping[str, Json]) -> None:
        self._references = _References(root)
        self._done: dict[tuple[int, bool], Work] = {}
        self._active: set[tuple[int, bool]] = set()

    def visit(self, node: Json, depth: int, *, named: bool = False) -> Work:
        """The work of a schema or a list of them; `named` if it holds schemas by names of its own."""
        if not isinstance(node, Mapping | list):
            return Work(0, 0)
        if depth > _DEPTH_MAX:
            return _TOO_MUCH
        key = (id(node), named)
        if key in self._active:
            return Work(1, 1)
        known = self._done.get(key)
        if known is not None:
            return known
        self._active.add(key)
        visits, recursions = 1, 0
        children = self._children(node, named=named)
        if children is None:
            visits = WORK_MAX + 1
        for child, inside in children or ():
            part = self.visit(child, depth + 1, named=inside)
            visits = min(visits + part.visits, WORK_MAX + 1)
            recursions = min(recursions + part.recursions, WORK_MAX)
        self._active.discard(key)
        work = self._done[key] = Work(visits, recursions)
        return work

    def _children(self, node: Sequence[Json] | Mapping[str, Json], *, named: bool) -> list[tuple[Json, bool]] | None:
        """What a validator goes on to, each with whether it holds named schemas; nothing if that cannot be told."""
        if not isinstance(node, Mapping):
            return [(item, False) for item in node]
        if named:
            return [(item, False) for item in node.values()]
        children = [(value, key in _NAMED) for key, value in node.items() if key not in _NOT_VISITED]
        for key in _REFERENCES:
            reference = node.get(key)
            if isinstance(reference, str):
                targets = self._references.targets(reference)
                if not targets:
                    return None
                children += [(target, False) for target in targets]
        return children


class _References:
    """What references of a schema lead to: everything that they could mean, so that the work is never too small.

    Of an address only its last part is compared, and an anchor is looked for everywhere, because how addresses are
    put together and which parts of a document have one of their own is for the validator to say.
    """

    def __init__(self, root: Mapping[str, Json]) -> None:
        self._root = root
        self._found: dict[str, list[Json]] = {}
        self._resources: list[tuple[str, Mapping[str, Json]]] | None = None
        self._anchors: dict[str, list[Json]] = {}

    def targets(self, reference: str) -> list[Json]:
        """The targets of a reference; none if it leads nowhere that is known, or to too many places."""
        found = self._found.get(reference)
        if found is None:
            found = self._found[reference] = self._find(reference)
        return found

    def _find(self, reference: str) -> list[Json]:
        if self._resources is None:
            self._resources = self._look()
        address, _, written = reference.partition("#")
        resources: list[Mapping[str, Json]] = [self._root] if not address else []
        resources += [node for name, node in self._resources if not address or name == _last_part(address)]
        if len(resources) > _MEANINGS_MAX:
            return []
        fragments = {written, unquote(written)}
        targets: list[Json] = []
        for fragment in fragments:
            if fragment and not fragment.startswith("/"):
                targets += self._anchors.get(fragment, ())
            else:
                targets += [target for node in resources if (target := point(node, fragment)) is not None]
        unique = list({id(target): target for target in targets}.values())
        return unique if len(unique) <= _MEANINGS_MAX else []

    def _look(self) -> list[tuple[str, Mapping[str, Json]]]:
        """All parts with an address of their own; notes the anchors besides."""
        resources: list[tuple[str, Mapping[str, Json]]] = []
        stack: list[Json] = [self._root]
        while stack:
            node = stack.pop()
            if isinstance(node, Mapping):
                stack.extend(node.values())
                for key in ("$id", "id"):
                    name = node.get(key)
                    if isinstance(name, str):
                        address, _, anchor = name.partition("#")
                        if address:
                            resources.append((_last_part(address), node))
                        self._anchors.setdefault(anchor, []).append(node)
                for key in ("$anchor", "$dynamicAnchor"):
                    name = node.get(key)
                    if isinstance(name, str):
                        self._anchors.setdefault(name, []).append(node)
            elif isinstance(node, list):
                stack.extend(node)
        return resources


def _last_part(address: str) -> str:
    return unquote(address).rstrip("/").rpartition("/")[2].casefold()


def point(node: Json, pointer: str) -> Json:
    """What a JSON pointer leads to, or nothing."""
    for part in pointer.split("/")[1:]:
        step = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, Mapping):
            node = node.get(step)
        elif isinstance(node, list) and step.isdecimal() and int(step[:9]) < len(node):
            node = node[int(step[:9])]
        else:
            return None
    return node
