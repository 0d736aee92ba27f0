"""Trains the table: a static student learns from a teacher which tools are near to which needs.

Five streams, one batch of each in every step:
  tools    a tool's own name or one of its sentences must find the rest of its text among tools of the same servers
  pairs    a query must find its tool; tools are drawn evenly, so that a tool with many queries does not rule
  queries  the same queries against the catalogue of tools, where only the teacher says what is near
  words    single words, definitions and examples of use against the catalogue of tools, judged by the teacher
  general  words, definitions and examples among themselves, judged by the teacher
What is learned is small against where it starts: a shift of each row, a weight of each row, and one linear map for
all rows, so that words which the training never shows move along. All of it is held back by a penalty.
"""

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as functional
from tokens import Tokens, fields
from torch import Tensor

_FIELD_WEIGHTS = (0.8, 0.35, 1.0, 0.3)
_TEACHER_TEMPERATURE = 0.05
_CONTRASTIVE = 0.5
"""Weight of the plain contrastive loss beside the teacher's judgement."""
_DUPLICATE = 0.02
"""A text that the teacher finds nearer to the query than the right one by this much is no wrong answer."""
_SOURCES = {
    "metatool_single": 0.3, "numpybank_val": 0.6, "apibench_torchhub": 0.2, "apibench_huggingface": 1.0,
    "seal_tools": 1.5, "glaive_demo": 0.3,
}  # fmt: skip
_AVERAGING = 0.995

Weighted = tuple[list[int], list[float]]


class Student(torch.nn.Module):
    """The table under training."""

    def __init__(self, start: Tensor) -> None:
        super().__init__()
        self.start = start
        self.shift = torch.nn.Parameter(torch.zeros_like(start))
        self.map = torch.nn.Parameter(torch.eye(start.shape[1]))
        self.weight = torch.nn.Parameter(torch.zeros(len(start)))
        self.sharpness = torch.nn.Parameter(torch.tensor(3.0))
        self.average: dict[str, Tensor] = {}

    def embed(self, table: Tensor, texts: Sequence[Weighted]) -> Tensor:
        """Vectors of length one."""
        rows = torch.tensor([row for text in texts for row in text[0]])
        shares = torch.tensor([share for text in texts for share in text[1]])
        offsets = torch.tensor(np.cumsum([0] + [len(text[0]) for text in texts[:-1]]))
        weights = torch.exp(self.weight[rows]) * shares
        summed = functional.embedding_bag(rows, table, offsets, mode="sum", per_sample_weights=weights)
        return functional.normalize(summed @ self.map, dim=1)

    def penalty(self) -> Tensor:
        """How far the student has left its start."""
        away = self.map - torch.eye(len(self.map))
        return (self.shift**2).sum() / 100 + (away**2).sum() / 100 + (self.weight**2).sum() / 1000

    def remember(self, step: int) -> None:
        """Moves the running average, which is what is kept in the end."""
        share = min(_AVERAGING, (step + 1) / (step + 10))
        for name in ("shift", "map", "weight"):
            value = getattr(self, name).detach()
            if name in self.average:
                self.average[name].mul_(share).add_(value, alpha=1 - share)
            else:
                self.average[name] = value.clone()

    def table(self) -> np.ndarray:
        """The averaged table, with weights and map worked in."""
        mapped = (self.start + self.average["shift"]) @ self.average["map"]
        return (mapped * torch.exp(self.average["weight"])[:, None]).numpy()


class Streams:
    """The five kinds of batches; each method returns texts of both sides and the teacher's nearness."""

    def __init__(self, work: Path, seed: int) -> None:
        self.draw = random.Random(seed)
        tokens = Tokens(json.loads((work / "vocabulary.json").read_text("utf-8")))
        learned = json.loads((work / "examples.json").read_text("utf-8"))
        self.texts = [tokens.rows(text) for text in json.loads((work / "texts.json").read_text("utf-8"))]
        self.taught = torch.tensor(np.load(work / "texts.npy").astype(np.float32))
        self.tools = learned["tools"]
        self.tool_fields = [fields(tool, tokens) for tool in self.tools]
        self.tools_taught = self.taught[torch.tensor([tool["full"] for tool in self.tools])]
        by_server: dict[str, list[int]] = defaultdict(list)
        for at, tool in enumerate(self.tools):
            by_server[tool["server"]].append(at)
        self.servers = list(by_server.values())
        asked: dict[tuple[str, str, str], dict[str, object]] = {}
        self.queries: dict[bool, set[int]] = {True: set(), False: set()}
        for pair in learned["pairs"]:
            key = (pair["source"], pair["name"], pair["description"])
            entry = asked.setdefault(key, {"fields": fields(pair, tokens), "full": pair["full"], "queries": []})
            entry["queries"].append(pair["query"])  # type: ignore[attr-defined]
            self.queries[pair["source"] == "metatool_single"].add(pair["query"])
        self.sorted_queries = [sorted(self.queries[False]), sorted(self.queries[True])]
        self.by_source: dict[str, list[dict[str, object]]] = defaultdict(list)
        for (source, _, _), entry in asked.items():
            self.by_source[source].append(entry)
        general = json.loads((work / "general.json").read_text("utf-8"))
        self.general = [tokens.rows(text) or [0] for text in general]
        self.general_taught = torch.tensor(np.load(work / "general.npy").astype(np.float32))
        self.defined_from = len(general) - 72_000

    def dropped(self, rows: list[int], share: float) -> Weighted:
        """A text without some of its words, so that no single word becomes the key."""
        kept = [row for row in rows if self.draw.random() > share] or rows or [0]
        return kept, [1.0] * len(kept)

    def composed(self, parts: Sequence[list[int]], without: int = -1) -> Weighted:
        """A tool as the package composes it, with one field left out on demand."""
        rows: list[int] = []
        shares: list[float] = []
        for place, part in enumerate(parts):
            if part and place != without:
                rows += part
                shares += [_FIELD_WEIGHTS[place] / len(part) ** 0.5] * len(part)
        return (rows, shares) if rows else ([0], [1.0])

    def tool_batch(self, size: int = 320) -> tuple[list[Weighted], list[Weighted], Tensor]:
        """Names and sentences against the tools they came from."""
        if self.draw.random() < 0.6:
            drawn: list[int] = []
            while len(drawn) < size:
                server = self.draw.choice(self.servers)
                drawn += self.draw.sample(server, min(len(server), 24))
            chosen = list(dict.fromkeys(drawn))[:size]
        else:
            chosen = self.draw.sample(range(len(self.tools)), size)
        asked, left, right = [], [], []
        for at in chosen:
            tool, parts = self.tools[at], self.tool_fields[at]
            text = self.draw.choice([tool["named"], *tool["sentences"]])
            asked.append(text)
            left.append(self.dropped(self.texts[text], 0.15))
            if text == tool["named"]:
                without = 0 if parts[2] and self.draw.random() < 0.7 else -1
                right.append(self.composed(parts, without))
            elif self.draw.random() < 0.35:
                right.append(self.composed(parts, 2))
            else:
                said = set(self.texts[text]) if self.draw.random() < 0.6 else set()
                rest = [row for row in parts[2] if row not in said]
                right.append(self.composed((parts[0], parts[1], rest, parts[3])))
        near = self.taught[torch.tensor(asked)] @ self.tools_taught[torch.tensor(chosen)].T
        return left, right, near

    def pair_batch(self, size: int = 256) -> tuple[list[Weighted], list[Weighted], Tensor]:
        """Queries against their tools, of one source or of all."""
        names, weights = list(_SOURCES), list(_SOURCES.values())
        if self.draw.random() < 0.5:
            pool = self.by_source[self.draw.choices(names, weights)[0]]
            chosen = self.draw.sample(pool, min(size, len(pool)))
        else:
            mixed = [self.draw.choice(self.by_source[name]) for name in self.draw.choices(names, weights, k=size)]
            chosen = list({id(entry): entry for entry in mixed}.values())
        asked = [self.draw.choice(entry["queries"]) for entry in chosen]  # type: ignore[arg-type]
        near = self.taught[torch.tensor(asked)] @ self.taught[torch.tensor([entry["full"] for entry in chosen])].T
        right = [self.composed(entry["fields"]) for entry in chosen]  # type: ignore[arg-type]
        return [self.dropped(self.texts[text], 0.1) for text in asked], right, near

    def query_batch(self, size: int = 48) -> tuple[list[Weighted], list[Weighted], Tensor]:
        """Queries against the catalogue."""
        asked = [text for kind in self.sorted_queries for text in self.draw.sample(kind, size // 2)]
        left = [self.dropped(self.texts[text], 0.1) for text in asked]
        return left, *self._against_catalogue(self.taught[torch.tensor(asked)], top=40, each=8, others=160)

    def word_batch(self, size: int = 160) -> tuple[list[Weighted], list[Weighted], Tensor]:
        """General texts against the catalogue."""
        asked = self.draw.sample(range(len(self.general)), size)
        left = [(self.general[text], [1.0] * len(self.general[text])) for text in asked]
        return left, *self._against_catalogue(self.general_taught[torch.tensor(asked)], top=30, each=2, others=100)

    def general_batch(self, size: int = 400) -> tuple[list[Weighted], list[Weighted], Tensor]:
        """General texts against each other; half of the definitions meet the words that they define."""
        asked = self.draw.sample(range(len(self.general)), size)
        others = self.draw.sample(range(len(self.general)), size)
        for at in range(size // 2):
            if asked[at] >= self.defined_from:
                others[at] = asked[at] ^ 1
        left, right = ([(self.general[text], [1.0] * len(self.general[text])) for text in side] for side in (asked, others))
        return (
            left,
            right,
            self.general_taught[torch.tensor(asked)] @ self.general_taught[torch.tensor(others)].T,
        )

    def _against_catalogue(self, taught: Tensor, *, top: int, each: int, others: int) -> tuple[list[Weighted], Tensor]:
        near = taught @ self.tools_taught.T
        nearest = near.topk(top, dim=1).indices
        picked = nearest.gather(1, torch.randint(0, top, (len(taught), each))).reshape(-1)
        chosen = torch.unique(torch.cat([picked, torch.randint(0, len(self.tools), (others,))]))
        return [self.composed(self.tool_fields[at]) for at in chosen.tolist()], near[:, chosen]


def loss(student: Student, left: Tensor, right: Tensor, near: Tensor, *, paired: bool) -> Tensor:
    """How far the student's judgement is from the teacher's, and from the known right answer."""
    scores = left @ right.T * torch.exp(student.sharpness)
    aim = functional.softmax(near / _TEACHER_TEMPERATURE, dim=1)
    total = functional.kl_div(functional.log_softmax(scores, dim=1), aim, reduction="batchmean")
    if paired:
        itself = torch.eye(len(near), dtype=torch.bool)
        duplicates = (near > near.diag()[:, None] + _DUPLICATE) & ~itself
        total = total + _CONTRASTIVE * functional.cross_entropy(scores.masked_fill(duplicates, -30), torch.arange(len(near)))
    return total


def main() -> None:
    """Trains and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=2_400)
    parser.add_argument("--rate", type=float, default=1.5e-3)
    parser.add_argument("--hold", type=float, default=0.03, help="weight of the penalty for leaving the start")
    parser.add_argument("--words", type=float, default=1.5)
    parser.add_argument("--general", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    streams = Streams(options.work, options.seed)
    student = Student(torch.tensor(np.load(options.work / "start.npy")))
    rates = {
        student.shift: 1.0,
        student.map: 0.3,
        student.weight: 5.0,
        student.sharpness: 1e-2 / options.rate,
    }
    optimizer = torch.optim.Adam([{"params": [p], "lr": options.rate * r} for p, r in rates.items()], betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, step / 100) * max(0.05, 1 - step / options.steps)
    )
    plan = (
        (streams.tool_batch, 1.0, True), (streams.pair_batch, 1.0, True), (streams.query_batch, 1.0, False),
        (streams.word_batch, options.words, False), (streams.general_batch, options.general, False),
    )  # fmt: skip
    for step in range(options.steps):
        table = student.start + student.shift
        total = options.hold * student.penalty()
        for batch, weight, paired in plan:
            left, right, near = batch()
            total = total + weight * loss(
                student, student.embed(table, left), student.embed(table, right), near, paired=paired
            )
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        schedule.step()
        student.remember(step)
        if step % 100 == 99:
            print(step + 1, round(float(total.detach()), 3), flush=True)
            np.save(options.out, student.table())
    np.save(options.out, student.table())


if __name__ == "__main__":
    main()
