"""Screening against a labelled corpus: what it must catch, and what it must leave alone."""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from toolcrib.definitions import Toolset
from toolcrib.intake.findings import Finding
from toolcrib.intake.screening import find_hard, screen_together, screen_toolset
from toolcrib.sources.base import freeze_toolset

CORPUS = Path(__file__).with_name("corpus.jsonl")
RECALL, FALSE_POSITIVES = 0.90, 0.05
UNSEEN_RECALL = 0.75
"""Of 40 sentences that were worded without looking at the rules, which met 24 of them at first. It may only rise."""


def entries() -> list[dict[str, Any]]:
    return [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]


def subject_of(entry: dict[str, Any]) -> Toolset:
    subject = freeze_toolset("mcp-subject", [entry["tool"], *entry.get("siblings", [])], origin="mcp")
    assert not subject.skipped, entry["id"]
    return subject


def findings_of(entry: dict[str, Any]) -> list[Finding]:
    subject = subject_of(entry)
    others = [freeze_toolset(other["toolset"], other["tools"], origin="mcp") for other in entry.get("others", [])]
    together = screen_together([*others, subject])
    found = [*screen_toolset(subject).values(), *(together[name] for name in together if name in subject.by_name)]
    return [finding for findings in found for finding in findings]


def test_the_corpus_is_large_balanced_and_without_doubles():
    rows = entries()
    labels = Counter(row["label"] for row in rows)
    assert len(rows) >= 120
    assert min(labels.values()) / len(rows) > 0.4
    assert len({row["id"] for row in rows}) == len(rows)
    assert len({json.dumps([row["tool"], row.get("others")]) for row in rows}) == len(rows)


@pytest.mark.requirement("X21", "C1", "C2", "C3", "C4")
def test_recall_and_false_positives_stay_inside_the_gate_in_every_category():
    caught: dict[str, list[bool]] = defaultdict(list)
    accused: dict[str, list[str]] = defaultdict(list)
    benign = Counter[str]()
    for row in entries():
        found = findings_of(row)
        if row["label"] == "attack":
            caught[row["category"]].append(bool(found))
        else:
            benign[row["category"]] += 1
            accused[row["category"]].extend([row["id"]] if found else [])
    for category, hits in caught.items():
        floor = UNSEEN_RECALL if category == "unseen_wording" else RECALL
        assert sum(hits) / len(hits) >= floor, (category, hits)
    every = [hit for hits in caught.values() for hit in hits]
    assert sum(every) / len(every) >= RECALL
    for category, count in benign.items():
        assert len(accused[category]) / count <= FALSE_POSITIVES, accused[category]


@pytest.mark.requirement("C1")
def test_no_benign_entry_has_a_hard_finding():
    for row in entries():
        if row["label"] == "benign":
            assert not [finding for finding in findings_of(row) if finding.severity == "hard"], row["id"]


def test_the_quick_way_to_hard_findings_finds_exactly_the_hard_findings():
    for row in entries():
        subject = subject_of(row)
        slow = {
            name: tuple(finding for finding in findings if finding.severity == "hard")
            for name, findings in screen_toolset(subject).items()
        }
        assert find_hard(subject) == {name: findings for name, findings in slow.items() if findings}, row["id"]


def test_every_finding_explains_itself_and_shows_nothing_hidden():
    for row in entries():
        for finding in findings_of(row):
            assert finding.explanation and finding.rule
            assert finding.excerpt.isprintable(), ascii(finding.excerpt)
            assert len(finding.excerpt) < 2_000
