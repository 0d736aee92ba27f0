"""How much work a schema can make a validator do, before it is allowed to do any.

A few hundred bytes of `$ref`s that refer twice to the next one double the work at every level, and no validator can
be interrupted from outside. So the work is counted first, following references as a validator would, and a schema
that exceeds the budget is not checked at all.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from toolcrib.definitions import Json

WORK_MAX = 1_000_000
"""Subschema visits that one validation may cost: about 100 ms."""
_DEPTH_MAX = 300


@dataclass(frozen=True, slots=True)
class Work:
    """What one pass through a schema costs."""

    visits: int
    """Subschemas visited, references followed once."""
    recursions: int
    """References that lead back into themselves: each level of the arguments may repeat the pass so often."""

    def allows(self, depth: int) -> bool:
        """Whether arguments nested so deeply can be checked within the budget."""
        if self.visits > WORK_MAX:
            return False
        return self.recursions <= 1 or self.visits * self.recursions ** min(depth, 64) <= WORK_MAX


def measure_work(schema: Mapping[str, Json]) -> Work:
    """The work of a schema; saturates above the budget."""
    return _Measure(schema).visit(schema, 0)


class _Measure:
    def __init__(self, root: Mapping[str, Json]) -> None:
        self._root = root
        self._done: dict[int, Work] = {}
        self._active: set[int] = set()

    def visit(self, node: Json, depth: int) -> Work:
        if not isinstance(node, Mapping | list):
            return Work(0, 0)
        if depth > _DEPTH_MAX:
            return Work(WORK_MAX + 1, 0)
        key = id(node)
        if key in self._active:
            return Work(1, 1)
        known = self._done.get(key)
        if known is not None:
            return known
        self._active.add(key)
        visits, recursions = 1, 0
        if isinstance(node, Mapping):
            # Definitions are visited where something refers to them, not where they stand.
            children = [value for name, value in node.items() if name not in {"$defs", "definitions"}]
        else:
            children = list(node)
        if isinstance(node, Mapping) and isinstance(node.get("$ref"), str):
            children.append(self._target(str(node["$ref"])))
        for child in children:
            part = self.visit(child, depth + 1)
            visits = min(visits + part.visits, WORK_MAX + 1)
            recursions = min(recursions + part.recursions, WORK_MAX)
        self._active.discard(key)
        work = self._done[key] = Work(visits, recursions)
        return work

    def _target(self, reference: str) -> Json:
        node: Json = self._root
        if reference not in {"#", "#/"}:
            for part in reference.removeprefix("#").strip("/").split("/"):
                step = part.replace("~1", "/").replace("~0", "~")
                if isinstance(node, Mapping):
                    node = node.get(step)
                elif isinstance(node, list) and step.isdigit() and int(step) < len(node):
                    node = node[int(step)]
                else:
                    return None
        return node
