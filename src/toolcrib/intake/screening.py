"""Screening: everything that looks wrong in a definition before a model reads it. Offline, pure, explained.

Every string is looked at, keys, enum values, defaults and titles included. `screen_tool` judges a definition alone,
`screen_toolset` also its neighbours in the same toolset, and `screen_together` what toolsets say about each other.
Nothing here decides what happens: that is `toolcrib.intake.admission`.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from itertools import pairwise

import orjson

from toolcrib.definitions import Fingerprint, Tool, Toolset
from toolcrib.intake.encoded import decoded_texts
from toolcrib.intake.findings import Finding, excerpt_of, make_visible, strings_of
from toolcrib.intake.glance import (
    concealing_stretches,
    has_controls,
    may_be_encoded,
    may_conceal,
    odd_characters,
    only_parts_words,
    suspects,
    without_escapes,
)
from toolcrib.intake.hidden import find_hidden, has_suspects
from toolcrib.intake.naming import fold, letters_of, skeleton
from toolcrib.intake.phrases import find_encoded, find_padding, find_phrases, fold_text, may_hold_phrases
from toolcrib.limits import SCREENED_MAX_CHARS

_BORDER = "\n\x1f\n"
_WORD = re.compile(r"[^\W\d_]+")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]{0,127}(?:[_.-][A-Za-z0-9]+)+|[a-z]{1,128}(?:[A-Z][a-z0-9]+)+")
"""With a first part that is bounded: a text of one endless word takes no longer than any other."""
_SENTENCE = re.compile(r"(?<=[.!?。])\s+|\n+")
_OVERRULES = re.compile(
    r"\b(?:instead of|rather than|in place of|do not (?:use|call)|don't (?:use|call)|never (?:use|call)|stop using"
    r"|avoid|replaces?|supersedes?|overrides?|deprecated|no longer|broken|unsafe|insecure"
    r"|(?:before|after|when|whenever) (?:using|calling|invoking|running|you (?:use|call))|is (?:called|used|invoked)"
    r"|(?:every|each) (?:call|use)|all calls|must (?:also|always|first)"
    r"|always (?:set|use|add|pass|send|include|call)|change the|recipient|forward)\b",
    re.IGNORECASE,
)
_ORDER_MIN_CHARS = 12
"""The shortest order to conceal: "hide from user" has more."""
_DISTINCTIVE_CHARS = 8
_CLONE_WORDS = 8
_CLONE_LIKENESS = 0.8


def screen_tool(tool: Tool) -> tuple[Finding, ...]:
    """What is wrong with one definition, by itself."""
    return tuple(_screen(tool))


def screen_toolset(toolset: Toolset) -> Mapping[str, tuple[Finding, ...]]:
    """Findings by exposed name; tools without any are left out."""
    found: dict[str, list[Finding]] = {tool.name: list(_screen(tool)) for tool in toolset.tools}
    for name, finding in _find_look_alikes(toolset.tools):
        found[name].append(finding)
    return {name: tuple(findings) for name, findings in found.items() if findings}


Known = MutableMapping[Fingerprint, tuple[Finding, ...]]
"""Hard findings of single tools by content: what a changed toolset still has in common with the old one."""


def find_hard(toolset: Toolset, known: Known | None = None) -> Mapping[str, tuple[Finding, ...]]:
    """The hard findings of `screen_toolset` alone, for a fraction of the time: fit to be asked before every serve."""
    found: dict[str, list[Finding]] = defaultdict(list)
    kept: Known = {} if known is None else known
    # Looking again takes less time than finding out what it would be kept by.
    for place in suspects([tool.raw for tool in toolset.tools]):
        tool = toolset.tools[place]
        findings = kept.get(tool.fingerprint)
        if findings is None:
            findings = kept[tool.fingerprint] = _find_hard(tool)
        if findings:
            found[tool.name].extend(findings)
    if not "".join([tool.leaf for tool in toolset.tools]).isascii():
        for name, finding in _find_look_alikes(toolset.tools):
            if finding.severity == "hard":
                found[name].append(finding)
    return {name: tuple(findings) for name, findings in found.items() if findings}


def _find_hard(tool: Tool) -> tuple[Finding, ...]:
    return tuple(item for item in _screen(tool) if item.severity == "hard") if _may_be_hard(tool) else ()


def _may_be_hard(tool: Tool) -> bool:
    """Asks the raw bytes what can make a finding hard: hidden or foreign characters, concealment, encoded orders."""
    raw = tool.raw
    odd = odd_characters(raw)
    if has_controls(raw) or (odd and (not tool.leaf.isascii() or _has_hidden(tool, odd))):
        return True
    plain = without_escapes(raw)
    return _may_conceal(plain, spelled=not only_parts_words(odd)) or (
        may_be_encoded(raw, plain) and any(True for _ in decoded_texts(_unescaped(raw)))
    )


def _has_hidden(tool: Tool, odd: str) -> bool:
    """Whether there is a hidden character without an honest reason, such as the joiner of an emoji has one."""
    return has_suspects(odd) and any(
        finding.severity == "hard" for path, text in strings_of(tool.definition) for finding in find_hidden(path, text)
    )


def _may_conceal(plain: bytes, *, spelled: bool) -> bool:
    """Whether some string can hold an order to conceal. `spelled`: letters other than ASCII may spell it."""
    if not may_conceal(fold_text(plain.decode()).encode() if spelled else plain):
        return False
    # An order stands in one string: the patterns read only the stretches of those that can hold it.
    strings = (part for part in plain.split(b'"') if len(part) >= _ORDER_MIN_CHARS)
    return any(
        may_hold_phrases(stretch.decode(errors="replace"), only="conceal")
        for part in strings
        if spelled or may_conceal(part)
        for stretch in concealing_stretches(fold_text(part.decode()).encode())
    )


def _unescaped(raw: bytes) -> str:
    return _BORDER.join(text for _, text in strings_of(orjson.loads(raw)))


def screen_together(toolsets: Sequence[Toolset]) -> Mapping[str, tuple[Finding, ...]]:
    """What tools of one toolset say about another's, by exposed name."""
    found: dict[str, list[Finding]] = defaultdict(list)
    for name, finding in (*_find_shadowing(toolsets), *_find_clones(toolsets)):
        found[name].append(finding)
    return {name: tuple(findings) for name, findings in found.items()}


def _screen(tool: Tool) -> Iterator[Finding]:
    strings = list(strings_of(tool.definition))
    if not tool.raw.isascii() or has_controls(tool.raw):
        for path, text in strings:
            yield from find_hidden(path, text)
            yield from _find_mixed(path, text)
    everything = _BORDER.join(text for _, text in strings)
    yield from _find_orders(strings, everything[:SCREENED_MAX_CHARS])
    if len(everything) > SCREENED_MAX_CHARS:
        yield Finding(
            rule="length",
            severity="soft",
            path="",
            excerpt=f"{len(everything)} characters",
            explanation=f"only the first {SCREENED_MAX_CHARS} characters were read for phrases",
        )
    if not tool.leaf.isascii() and letters_of(tool.leaf.casefold()).isascii():
        yield Finding(
            rule="look_alike.name",
            severity="hard",
            path="name",
            excerpt=tool.leaf.encode("ascii", "backslashreplace").decode(),
            explanation=f"the name only looks like `{letters_of(tool.leaf.casefold())}`",
        )


def _find_orders(strings: Sequence[tuple[str, str]], everything: str) -> Iterator[Finding]:
    """Asks the whole definition first: nearly all of them have nothing to find."""
    finders = [
        find
        for find, worth_it in (
            (find_phrases, may_hold_phrases(fold_text(everything))),
            (find_encoded, any(True for _ in decoded_texts(everything))),
            (find_padding, bool(next(find_padding("", everything), None))),
        )
        if worth_it
    ]
    left = SCREENED_MAX_CHARS
    for path, text in strings:
        if left <= 0 or not finders:
            return
        for find in finders:
            yield from find(path, text[:left])
        left -= len(text)


def _find_mixed(path: str, text: str) -> Iterator[Finding]:
    """Words of Latin letters with foreign look-alikes between them."""
    for match in _WORD.finditer(text):
        word = match[0].casefold()
        if word.isascii() or not letters_of(word).isascii():
            continue
        latin = [char.isascii() for char in word]
        borders = sum(one != two for one, two in pairwise(latin))
        if any(latin) and (borders > 1 or (borders == 1 and latin.count(False) == 1 and len(word) > 3)):
            if word.isascii() or all(_is_european(char) for char in word if not char.isascii()):
                continue
            yield Finding(
                rule="look_alike.word",
                severity="soft",
                path=path,
                excerpt=excerpt_of(text, *match.span()),
                explanation=f"`{make_visible(match[0])}` mixes alphabets and only looks like `{letters_of(word)}`",
            )
            return


def _is_european(char: str) -> bool:
    """Letters of Latin alphabets themselves (ø, ł, đ, ı): part of honest words."""
    return ord(char) < 0x250


def _find_look_alikes(tools: Iterable[Tool]) -> Iterator[tuple[str, Finding]]:
    """Tools of one toolset whose names a reader cannot tell apart: the later one is reported."""
    seen: dict[str, Tool] = {}
    for tool in tools:
        first = seen.setdefault(skeleton(tool.leaf), tool)
        if first is not tool:
            same_letters = fold(first.leaf) == fold(tool.leaf)
            yield (
                tool.name,
                Finding(
                    rule="look_alike.sibling",
                    severity="soft" if same_letters or tool.leaf.isascii() else "hard",
                    path="name",
                    excerpt=tool.leaf.encode("ascii", "backslashreplace").decode(),
                    explanation=f"hard to tell from `{first.leaf}` of the same toolset",
                ),
            )


def _find_shadowing(toolsets: Sequence[Toolset]) -> Iterator[tuple[str, Finding]]:
    """Descriptions that give orders about a distinctive tool of another toolset."""
    owners: dict[str, set[str]] = defaultdict(set)
    for toolset in toolsets:
        for tool in toolset.tools:
            for name in {tool.leaf.casefold(), tool.name.casefold()}:
                if (len(name) >= _DISTINCTIVE_CHARS and _NAME.fullmatch(name)) or "_" in name:
                    owners[name].add(toolset.name)
    for toolset in toolsets:
        for tool in toolset.tools:
            for path, text in strings_of({"description": tool.description, "inputSchema": tool.parameters}):
                finding = _shadow_in(path, text, toolset.name, owners)
                if finding:
                    yield tool.name, finding
                    break


def _shadow_in(path: str, text: str, own: str, owners: Mapping[str, set[str]]) -> Finding | None:
    for match in _NAME.finditer(text):
        others = owners.get(match[0].casefold())
        if not others or own in others or len(others) > 1:
            continue
        sentence = _sentence_around(text, match.start())
        if _OVERRULES.search(sentence):
            return Finding(
                rule="shadowing",
                severity="soft",
                path=path,
                excerpt=excerpt_of(text, *match.span()),
                explanation=f"gives orders about `{match[0]}`, a tool of `{min(others)}`",
            )
    return None


def _sentence_around(text: str, place: int) -> str:
    start = end = 0
    for border in _SENTENCE.finditer(text):
        if border.end() <= place:
            start = border.end()
        else:
            end = border.start()
            break
    return text[start : end or len(text)]


def _find_clones(toolsets: Sequence[Toolset]) -> Iterator[tuple[str, Finding]]:
    """Tools that copy name and description of another toolset's, in a toolset that otherwise differs from it."""
    by_skeleton: dict[str, list[Tool]] = defaultdict(list)
    for toolset in toolsets:
        for tool in toolset.tools:
            by_skeleton[skeleton(tool.leaf)].append(tool)
    clones: dict[tuple[str, str], list[tuple[Tool, Tool]]] = defaultdict(list)
    for tools in by_skeleton.values():
        for position, tool in enumerate(tools[1:], 1):
            original = next((first for first in tools[:position] if _is_clone(first, tool)), None)
            if original is not None:
                clones[(original.toolset, tool.toolset)].append((original, tool))
    sizes: dict[str, int] = {toolset.name: len(toolset.tools) for toolset in toolsets}
    for (_, copier), pairs in clones.items():
        if 2 * len(pairs) >= sizes[copier]:
            continue  # the same server twice, or a fork of it: the operator's own doing
        for original, tool in pairs:
            yield (
                tool.name,
                Finding(
                    rule="clone",
                    severity="soft",
                    path="description",
                    excerpt=excerpt_of(tool.description, 0, 60),
                    explanation=f"copies name and description of `{original.name}`",
                ),
            )


def _is_clone(first: Tool, second: Tool) -> bool:
    if first.toolset == second.toolset:
        return False
    one, two = (set(_WORD.findall(tool.description.casefold())) for tool in (first, second))
    if min(len(one), len(two)) < _CLONE_WORDS:
        return False
    return len(one & two) / len(one | two) >= _CLONE_LIKENESS
