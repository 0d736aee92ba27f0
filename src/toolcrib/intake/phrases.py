"""Phrases that talk to the model instead of describing the tool.

Each rule is a pattern with bounded gaps over text that was folded the way a model reads it: compatibility forms,
accents, look-alike letters, hidden characters and white space make no difference. Rules are an alarm, not a wall: a
patient author words around any list. So a single phrase is soft; hard is only what has next to no honest reading,
such as an order that conceals itself *and* reaches for secrets, or an order that was encoded.

A tool that speaks *about* attacks (a scanner, a filter, a training set) quotes them: a phrase that stands in
quotation marks after such words as "detects" is not an order and is left alone.
"""

import re
import unicodedata
from collections.abc import Iterator

from toolcrib.intake.encoded import decoded_texts
from toolcrib.intake.findings import Finding, Severity, excerpt_of, is_variation_selector
from toolcrib.intake.naming import letters_of
from toolcrib.intake.rules import Rule, phrase_rules

_ABOUT_ATTACKS = re.compile(
    r"\b(?:detect\w*|scan(?:s|ner|ning)?|flag(?:s|ged|ging)?|filter(?:s|ing)?|classif\w+|block(?:s|ing)?|screen(?:s|ing)?"
    r"|audit(?:s|ing)?|test(?:s|ing)? (?:for|whether|against|if|an?|the|your)|red[- ]team\w*|injection|jailbreak\w*"
    r"|malicious|attack\w*|adversarial|examples?|sample|e\.g\.|such as|like|phrases?|looks? for|search(?:es)? for"
    r"|match(?:es|ing)?|guard|protect\w*|prevent\w*|saniti[sz]\w*|moderat\w*|report(?:s|ed)?|corpus|dataset|known)\b"
)
_QUOTES = "\"'`“”‘’«»「」„"
_PADDED_CHARS = 25
_PADDING = re.compile(r"(?:(?<![ \t\u00a0\u3000])[ \t\u00a0\u3000]{120,}+|(?<![ \t\n])(?:[ \t]*+\n){25,}+)(?=\S)")
"""A gap is tried from its beginning alone: from each of its characters it takes the square of its length."""


def may_hold_phrases(folded: str, *, only: str | None = None) -> bool:
    """Whether a rule (or only this one) could match some part of this folded text: asked of a whole definition."""
    return any(
        clause.may_match(folded) and clause.pattern.search(folded)
        for rule in phrase_rules()
        if only is None or rule.id == only
        for clause in rule.clauses
    )


def find_phrases(path: str, text: str) -> Iterator[Finding]:
    """Findings on what one string says to the model."""
    folded = fold_text(text)
    found = [(rule, match) for rule in phrase_rules() if (match := _first_order(rule, folded)) is not None]
    severity = _severity({rule.id for rule, _ in found})
    for rule, match in found:
        yield Finding(
            rule=f"phrase.{rule.id}",
            severity=severity,
            path=path,
            excerpt=excerpt_of(folded, *match.span()),
            explanation=rule.explanation,
        )


def find_padding(path: str, text: str) -> Iterator[Finding]:
    """A finding on text that was pushed out of sight."""
    padding = _PADDING.search(text) if len(text) - len(" ".join(text.split())) >= _PADDED_CHARS else None
    if padding:
        yield Finding(
            rule="phrase.padding",
            severity="soft",
            path=path,
            excerpt=excerpt_of(text, padding.end(), padding.end() + 40),
            explanation="a long gap pushes the text that follows out of sight",
        )


def fold_text(text: str) -> str:
    """The text as a model takes it: lower case, plain letters, single spaces, nothing hidden."""
    if text.isascii():
        return " ".join(text.lower().split())
    plain = unicodedata.normalize("NFKD", text).lower()
    odd = {char for char in set(plain) if not char.isascii()}
    hidden = {ord(char): None for char in odd if _is_hidden(char)}
    if hidden:
        plain = plain.translate(hidden)
    if any(char.isalpha() for char in odd):
        plain = letters_of(plain)
    return " ".join(plain.replace("’", "'").replace("‘", "'").split())


def _is_hidden(char: str) -> bool:
    return not char.isascii() and (
        unicodedata.category(char) in {"Cf", "Co", "Cn", "Mn"} or is_variation_selector(char)
    )


def _severity(rules: set[str]) -> Severity:
    """Hard is an order that hides itself and does harm as well."""
    harmful = rules & {"secrets", "exfiltration", "override", "precondition", "role", "decode"}
    return "hard" if "conceal" in rules and harmful and rules & {"secrets", "exfiltration", "override"} else "soft"


def _first_order(rule: Rule, text: str) -> re.Match[str] | None:
    for clause in rule.clauses:
        if clause.may_match(text):
            for match in clause.pattern.finditer(text):
                if not match.groupdict().get("excuse") and not _is_quoted(text, match):
                    return match
    return None


def _is_quoted(text: str, match: re.Match[str]) -> bool:
    """Whether the phrase is spoken about: between quotation marks, in a sentence about attacks."""
    start, end = match.span()
    before = text[max(0, start - 160) : start]
    if not _ABOUT_ATTACKS.search(before):
        return False
    # An opening mark with nothing but a few words between it and the phrase, and a closing one after it.
    near = before[-48:]
    opened = any(mark in _QUOTES or mark in "([<" for mark in near)
    closed = any(mark in _QUOTES or mark in ")]>" for mark in text[end : end + 60]) or match[0][-1:] in ">]"
    return opened and closed


def find_encoded(path: str, text: str) -> Iterator[Finding]:
    """A finding on orders that only a decoder can read."""
    for how, start, end, inner in decoded_texts(text):
        folded = fold_text(inner)
        rule = next((rule for rule in phrase_rules() if _first_order(rule, folded) is not None), None)
        if rule is not None:
            yield Finding(
                rule="phrase.encoded",
                severity="hard",
                path=path,
                excerpt=excerpt_of(text, start, min(end, start + 24)),
                explanation=f"{how} text that decodes to “{excerpt_of(inner, 0, 60)}”: it {rule.explanation}",
            )
            return
