"""Proposing aliases from what people really asked for (X8).

A search that ended in a call says in which words a tool was wanted. Words that came up for the same tool in several
sessions, and that its name does not say already, are worth an alias. Nothing is ever applied: a person reads the
proposal and takes it into the configuration, or does not.

The feed holds such words only if `activity.queries` is on; see `toolcrib.activity.query_words` for what is kept.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from toolcrib.definitions import Json, JsonObject
from toolcrib.intake.naming import SEPARATOR
from toolcrib.limits import LEARNED_WORDS_PER_TOOL, SEARCHES_REMEMBERED

_WORD = re.compile(r"[a-z]+|[^\W\d_a-zA-Z]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_NO_TEXT = frozenset(("y", "n", "yes", "no", "true", "false", "on", "off", "null"))
"""What YAML takes for something else than a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Words that a tool was wanted with."""

    tool: str
    words: tuple[str, ...]
    """The most frequent first."""
    sessions: int
    """Sessions in which a search ended in a call of it."""
    counts: Mapping[str, int]
    """Word → sessions."""


@dataclass(slots=True)
class _Session:
    searches: list[frozenset[str]] = field(default_factory=list[frozenset[str]])
    """Since the last call."""
    tried: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """Tool that was called and did not run → the words that had led to it: they are about no other tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """What the feed says."""

    proposals: tuple[Proposal, ...]
    searches: int
    with_words: int
    """Searches whose words were kept."""
    pairs: int
    """Calls that came after such a search."""


def propose_aliases(
    events: Iterable[JsonObject],
    *,
    min_sessions: int = 2,
    known: Mapping[str, Collection[str]] | None = None,
) -> Lesson:
    """The proposals that events of a feed lead to.

    Args:
        events: In the order in which they happened.
        min_sessions: In how many sessions a word must have led to the tool.
        known: Aliases that are there already, by tool.
    """
    sessions: dict[str, _Session] = {}
    wanted: dict[str, dict[str, set[str]]] = {}
    callers: dict[str, set[str]] = {}
    searches = with_words = pairs = 0
    for event in events:
        session = sessions.setdefault(str(event.get("session", "")), _Session())
        if event.get("stage") == "search":
            searches += 1
            words = _words_of(event.get("detail"))
            with_words += words is not None
            if words:
                session.searches = [*session.searches, words][-SEARCHES_REMEMBERED:]
        elif event.get("stage") == "done":
            tool = event.get("tool")
            found = frozenset[str]().union(*session.searches)
            session.searches = []
            if not isinstance(tool, str):
                continue
            found |= session.tried.pop(tool, frozenset())
            if event.get("outcome") != "ok":
                session.tried[tool] = found
            elif found:
                pairs += 1
                who = str(event.get("session", ""))
                callers.setdefault(tool, set()).add(who)
                for word in found:
                    wanted.setdefault(tool, {}).setdefault(word, set()).add(who)
    proposals = [
        proposal
        for tool, words in wanted.items()
        if (proposal := _propose(tool, words, len(callers[tool]), min_sessions, _known(tool, known or {})))
    ]
    ordered = sorted(proposals, key=lambda item: (-item.sessions, item.tool))
    return Lesson(proposals=tuple(ordered), searches=searches, with_words=with_words, pairs=pairs)


def own_words(name: str) -> frozenset[str]:
    """The words that a tool's name says."""
    return frozenset(_stem(word) for word in _WORD.findall(_CAMEL.sub(" ", name).lower()))


def write_yaml(proposals: Sequence[Proposal]) -> str:
    """The proposals as they would stand in the configuration file."""
    lines = ["tools:", "  aliases:"]
    for item in proposals:
        words = ", ".join(map(_quoted, item.words))
        lines.append(f"    {_quoted(item.tool)}: [{words}]  # {_sessions(item.sessions)}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A word or a name as YAML reads it as a text: `off` would be false, `1_0` a number."""
    return text if _PLAIN.fullmatch(text) and text.lower() not in _NO_TEXT else json.dumps(text, ensure_ascii=False)


def _sessions(count: int) -> str:
    return "1 session" if count == 1 else f"{count} sessions"


def _propose(
    tool: str, words: Mapping[str, set[str]], sessions: int, min_sessions: int, known: Collection[str]
) -> Proposal | None:
    said = own_words(tool).union(*map(own_words, known))
    counts = Counter({word: len(who) for word, who in words.items() if len(who) >= min_sessions})
    kept = sorted((word for word in counts if _stem(word) not in said), key=lambda word: (-counts[word], word))
    kept = kept[:LEARNED_WORDS_PER_TOOL]
    if not kept:
        return None
    return Proposal(tool=tool, words=tuple(kept), sessions=sessions, counts={word: counts[word] for word in kept})


def _known(tool: str, aliases: Mapping[str, Collection[str]]) -> Collection[str]:
    """The aliases of a tool, given under its whole name or under the source's own."""
    return [*aliases.get(tool, ()), *aliases.get(tool.partition(SEPARATOR)[2], ())]


def _words_of(detail: Json) -> frozenset[str] | None:
    """The words of a search, perhaps none that could be kept; nothing if words are not kept at all."""
    words = detail.get("words") if isinstance(detail, Mapping) else None
    return frozenset(word for word in words if isinstance(word, str)) if isinstance(words, list) else None


def _stem(word: str) -> str:
    """Without the ending of a plural: `issues` and `issue` are one word."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
