"""Trains the sentence reader: it learns to point, from a query, at the vectors of the right tools.

It starts as all-MiniLM-L6-v2; the vectors of word pieces stay as they are. For every text the aim is a share for
each of some thousand tools: most of it for the tool that the text was written for and for tools that a teacher finds
nearly the same, so that doing the same under another name is no mistake; the rest for tools that the teacher finds
for the text itself, which is all that there is to aim at for a need that no tool was written down for. What is judged
is the reader alone and, for more, its mixture with the words of the query, as the package mixes them. The table does
not change, so that everything that was fitted to it stays right. At first the vectors of tools are the table's; with
`--tools` the reader reads them as well, some of them anew in every step, the others as it read them last.
"""

import argparse
import json
import random
import struct
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as functional
from needs import TAUGHT
from torch import Tensor

from toolcrib.limits import READER_MAX_PIECES, READER_TOOL_PIECES
from toolcrib.retrieval.base import PlainDocument
from toolcrib.retrieval.semantic import StaticModel, tool_text
from toolcrib.retrieval.wordpiece import WordPieces

WIDTH, HEADS, LAYERS = 384, 12, 6
_SHARES = {
    "search": 5.0, "plain": 6.0, "request": 6.0, "story": 3.0, "miss": 2.5, "sentence": 1.5, "name": 1.0,
    "metatool_single": 2.0, "seal_tools": 1.5, "numpybank_val": 0.3, "apibench_huggingface": 0.2, "glaive_demo": 0.2,
    "apibench_torchhub": 0.1,
}  # fmt: skip
"""How often each kind of text is drawn."""
_TEACHER_TEMPERATURE = 0.05
_TEXT_TEMPERATURE = 0.04
_TEACHER_SHARE = 0.35
"""What the teacher's own reading of a text says of the aim; of a need that is near and cannot be met, all."""
_NEAREST = 24
_CANDIDATES = 2_500
_SHARE, _SHARE_WITH_TOOLS = 0.65, 0.75
"""What the reader says of the mixture."""
_WEIGHT = 0.8
"""What the sentence says of a tool's vector, beside 1.0 for its words."""
_RIGHT, _NEAR = 64, 32
"""Tools that are read anew in a step: right ones, and others that the aim has a share for."""
_ALONE = 0.35
"""Weight of the reader alone in what is judged; the rest is the mixture."""
_AVERAGING = 0.998


def starting_weights(path: Path) -> dict[str, Tensor]:
    """The weights of all-MiniLM-L6-v2 from its safetensors file, by the names that are used here."""
    raw = path.read_bytes()
    (head,) = struct.unpack_from("<Q", raw)
    held: dict[str, Tensor] = {}
    for name, entry in json.loads(raw[8 : 8 + head]).items():
        if entry.get("dtype") == "F32":
            first, last = (8 + head + place for place in entry["data_offsets"])
            held[name.removeprefix("bert.")] = torch.tensor(
                np.frombuffer(raw[first:last], np.float32).reshape(entry["shape"])
            )
    weights = {
        "pieces": held["embeddings.word_embeddings.weight"],
        "places": held["embeddings.position_embeddings.weight"][:READER_MAX_PIECES]
        + held["embeddings.token_type_embeddings.weight"][0],
        "first.weight": held["embeddings.LayerNorm.weight"],
        "first.shift": held["embeddings.LayerNorm.bias"],
    }
    for layer in range(LAYERS):
        own = f"encoder.layer.{layer}."
        looks = [f"{own}attention.self.{part}" for part in ("query", "key", "value")]
        weights[f"{layer}.looks.weight"] = torch.cat([held[f"{part}.weight"].T for part in looks], 1)
        weights[f"{layer}.looks.shift"] = torch.cat([held[f"{part}.bias"] for part in looks])
        for name, part in (("seen", "attention.output"), ("widens", "intermediate"), ("narrows", "output")):
            weights[f"{layer}.{name}.weight"] = held[f"{own}{part}.dense.weight"].T.contiguous()
            weights[f"{layer}.{name}.shift"] = held[f"{own}{part}.dense.bias"]
        for name, part in (("after_looking", "attention.output"), ("after_thinking", "output")):
            weights[f"{layer}.{name}.weight"] = held[f"{own}{part}.LayerNorm.weight"]
            weights[f"{layer}.{name}.shift"] = held[f"{own}{part}.LayerNorm.bias"]
    return weights


class Student(torch.nn.Module):
    """The reader under training; computes what `toolcrib.retrieval.sentences` does."""

    def __init__(self, weights: dict[str, Tensor], dimensions: int) -> None:
        super().__init__()
        fixed = ("pieces", "places")
        self.fixed = {name: weights[name] for name in fixed}
        self.learned = {name: torch.nn.Parameter(w.clone()) for name, w in weights.items() if name not in fixed}
        if "points.weight" not in weights:
            self.learned["points.weight"] = torch.nn.Parameter(torch.randn(WIDTH, dimensions) * WIDTH**-0.5)
        self.sharpness = torch.nn.Parameter(torch.tensor(3.6))
        self.average: dict[str, Tensor] = {}

    def linear(self, name: str, states: Tensor) -> Tensor:
        """A product and a shift."""
        return functional.linear(states, self.learned[f"{name}.weight"].T, self.learned[f"{name}.shift"])

    def norm(self, name: str, states: Tensor) -> Tensor:
        """Mean 0 and deviation 1, weighed and shifted."""
        return functional.layer_norm(states, (WIDTH,), self.learned[f"{name}.weight"], self.learned[f"{name}.shift"], 1e-12)

    def forward(self, numbers: Tensor, there: Tensor, dropped: float = 0.1) -> Tensor:
        """The mean state of each sentence."""
        count, longest = numbers.shape
        states = self.norm("first", self.fixed["pieces"][numbers] + self.fixed["places"][:longest])
        states = functional.dropout(states, dropped, training=dropped > 0)
        mask = None
        if not bool(there.all()):
            mask = torch.where(there.bool(), 0.0, -1e9)[:, None, None, :].expand(count, 1, longest, longest)
        # Products in half the bits take half the time; attention itself is slower in them.
        with torch.autocast("cpu", torch.bfloat16):
            states = states.bfloat16()
            for layer in range(LAYERS):
                looks = self.linear(f"{layer}.looks", states).float().view(count, longest, 3, HEADS, WIDTH // HEADS)
                with torch.autocast("cpu", enabled=False):
                    looked = functional.scaled_dot_product_attention(*looks.permute(2, 0, 3, 1, 4), attn_mask=mask)
                seen = self.linear(f"{layer}.seen", looked.transpose(1, 2).reshape(count, longest, WIDTH))
                states = self.norm(f"{layer}.after_looking", states + seen)
                wide = functional.silu(1.702 * self.linear(f"{layer}.widens", states)) / 1.702
                thought = functional.dropout(self.linear(f"{layer}.narrows", wide), dropped, training=dropped > 0)
                states = self.norm(f"{layer}.after_thinking", states + thought)
        states = states.float()
        return (states * there[..., None]).sum(1) / there.sum(1, keepdim=True)

    def read(self, texts: list[list[int]], dropped: float = 0.1) -> Tensor:
        """Where texts point, given as the numbers of their pieces."""
        return self.points(self(*padded(texts), dropped=dropped))

    def points(self, sentences: Tensor) -> Tensor:
        """Vectors of length one in the space of the table."""
        return functional.normalize(sentences @ self.learned["points.weight"], dim=1)

    @torch.no_grad()
    def align(self, lessons: "Lessons", texts: int = 4_000) -> None:
        """Starts where the plain sentence points best at its tool, by least squares."""
        chosen = [at for _ in range(texts // 100) for at in lessons.drawn(100)]
        parts = [[lessons.numbers[at] for at in chosen[start : start + 100]] for start in range(0, texts, 100)]
        read = torch.cat([self(*padded(part), dropped=0.0) for part in parts])
        read = functional.normalize(read, dim=1)
        aims = lessons.tools[lessons.gold[torch.tensor(chosen)]]
        ridge = 0.1 * torch.eye(WIDTH)
        self.learned["points.weight"].copy_(torch.linalg.solve(read.T @ read + ridge, read.T @ aims))

    def remember(self, step: int) -> None:
        """Moves the running average, which is what is kept in the end."""
        share = min(_AVERAGING, (step + 1) / (step + 10))
        for name, value in self.learned.items():
            if name in self.average:
                self.average[name].mul_(share).add_(value.detach(), alpha=1 - share)
            else:
                self.average[name] = value.detach().clone()

    def result(self) -> dict[str, np.ndarray]:
        """What is written."""
        return {name: value.numpy() for name, value in (self.fixed | self.average).items()}


class Lessons:
    """Texts, what the table and the teacher make of them, and the tools."""

    def __init__(self, work: Path, model: StaticModel, seed: int) -> None:
        self.draw = random.Random(seed)
        learned: dict[str, Any] = json.loads((work / "reader_rows.json").read_text("utf-8"))
        texts = [text for text, _, _ in learned["rows"]]
        pieces = WordPieces.load()
        self.numbers = [pieces.numbers(text, at_most=READER_MAX_PIECES) for text in texts]
        self.gold = torch.tensor([place for _, place, _ in learned["rows"]])
        kinds = [kind for _, _, kind in learned["rows"]]
        self.missed = torch.tensor([kind == "miss" for kind in kinds])
        self.by_kind: dict[str, list[int]] = defaultdict(list)
        for place, kind in enumerate(kinds):
            self.by_kind[kind].append(place)
        self.words = torch.tensor(np.stack([model.embed_query(text) for text in texts]))
        documents = [
            PlainDocument(
                key=str(place), digest=f"reader:{place}", leaf=tool["name"], toolset=tool["server"] or "",
                description=tool["description"] or "", parameters=tuple(tool["params"][:20]), nested="",
            )
            for place, tool in enumerate(learned["catalogue"])
        ]  # fmt: skip
        self.tools = functional.normalize(torch.tensor(model.embed_documents(documents).astype(np.float32)), dim=1)
        self.written = [pieces.numbers(tool_text(document), at_most=READER_TOOL_PIECES) for document in documents]
        self.tools_read: Tensor | None = None
        """Tools as they were last read; nothing as long as they are not."""
        self.taught = torch.tensor(np.load(work / "reader_tools.npy").astype(np.float32))
        self.nearest = self.nearest_to(self.taught)
        self.read = torch.tensor(np.load(work / "reader_texts.npy").astype(np.float32))
        self.found = self.nearest_to(self.read)
        self.reading = torch.full((len(texts),), -1)
        self.reading[[kind in TAUGHT for kind in kinds]] = torch.arange(len(self.read))

    def nearest_to(self, vectors: Tensor) -> Tensor:
        """The tools that the teacher finds nearest to each vector."""
        return torch.cat([(part @ self.taught.T).topk(_NEAREST, dim=1).indices for part in vectors.split(2_000)])

    def drawn(self, size: int) -> list[int]:
        """Texts of like length, so that little is padded."""
        kinds = self.draw.choices(list(_SHARES), list(_SHARES.values()), k=6 * size)
        pool = sorted((self.draw.choice(self.by_kind[kind]) for kind in kinds), key=lambda at: len(self.numbers[at]))
        start = self.draw.randrange(6) * size
        return pool[start : start + size]

    @torch.no_grad()
    def read_tools(self, student: Student) -> None:
        """Has every tool read."""
        self.tools_read = torch.zeros_like(self.tools)
        for some in torch.tensor(sorted(range(len(self.written)), key=lambda at: len(self.written[at]))).split(128):
            self.tools_read[some] = student.read([self.written[at] for at in some.tolist()], dropped=0.0)

    def seen(self, student: Student, candidates: Tensor, aim: Tensor, gold: Tensor) -> Tensor:
        """The vectors of the candidates."""
        if self.tools_read is None:
            return self.tools[candidates]
        right = torch.unique(gold)
        right = right[torch.randperm(len(right))[:_RIGHT]]
        wanted = aim.sum(0)
        wanted[torch.searchsorted(candidates, right)] = 0.0
        fresh = torch.cat([right, candidates[torch.multinomial(wanted, _NEAR)]])
        vectors = student.read([self.written[at] for at in fresh.tolist()])
        read = self.tools_read[candidates].index_copy(0, torch.searchsorted(candidates, fresh), vectors)
        self.tools_read[fresh] = vectors.detach()
        return functional.normalize(self.tools[candidates] + _WEIGHT * read, dim=1)

    @torch.no_grad()
    def aim(self, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """Candidates, and the share of each of them for each text."""
        gold, read, judged = self.gold[chosen], self.reading[chosen], len(self.taught)
        known, taught = gold < judged, read >= 0
        near = torch.cat([self.nearest[gold[known]], self.found[read[taught]]])
        near = near.gather(1, torch.randint(0, _NEAREST, (len(near), 10))).reshape(-1)
        some = torch.randint(0, len(self.tools), (_CANDIDATES,))
        candidates = torch.unique(torch.cat([near, gold, some]))
        listed = torch.arange(len(candidates))[candidates < judged]
        rows = torch.arange(len(chosen))
        alike = torch.full((len(chosen), len(candidates)), -1.0)
        alike[rows[known][:, None], listed] = self.taught[gold[known]] @ self.taught[candidates[listed]].T
        alike[rows, torch.searchsorted(candidates, gold)] = 1.0
        meant = torch.full_like(alike, -1.0)
        meant[rows[taught][:, None], listed] = self.read[read[taught]] @ self.taught[candidates[listed]].T
        share = torch.where(self.missed[chosen], 1.0, _TEACHER_SHARE * taught)[:, None]
        aim = (1 - share) * functional.softmax(alike / _TEACHER_TEMPERATURE, dim=1)
        return candidates, aim + share * functional.softmax(meant / _TEXT_TEMPERATURE, dim=1)


def padded(texts: list[list[int]]) -> tuple[Tensor, Tensor]:
    """Numbers of pieces, and which of them are there."""
    longest = max(map(len, texts))
    numbers = torch.zeros((len(texts), longest), dtype=torch.long)
    there = torch.zeros((len(texts), longest))
    for row, text in enumerate(texts):
        numbers[row, : len(text)] = torch.tensor(text)
        there[row, : len(text)] = 1.0
    return numbers, there


def loss(student: Student, lessons: Lessons, chosen: list[int]) -> Tensor:
    """How far the reader, alone and mixed with the words, is from the aim."""
    places = torch.tensor(chosen)
    share = _SHARE if lessons.tools_read is None else _SHARE_WITH_TOOLS
    read = student.read([lessons.numbers[at] for at in chosen])
    mixed = functional.normalize((1 - share) * lessons.words[places] + share * read, dim=1)
    candidates, aim = lessons.aim(places)
    tools = lessons.seen(student, candidates, aim, lessons.gold[places])
    total = torch.zeros(())
    for vectors, weight in ((read, _ALONE), (mixed, 1 - _ALONE)):
        scores = functional.log_softmax(vectors @ tools.T * torch.exp(student.sharpness), dim=1)
        total = total + weight * functional.kl_div(scores, aim, reduction="batchmean")
    return total


def main() -> None:
    """Trains, and writes the weights as they are; `reader_export.py` makes the file that ships."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path, help="folder with reader_rows.json, reader_tools.npy, reader_texts.npy")
    parser.add_argument("start", type=Path, help="model.safetensors of all-MiniLM-L6-v2, or what an earlier run wrote")
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--rate", type=float, default=2e-4)
    parser.add_argument("--batch", type=int, default=160)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=105.0, help="ends earlier, if need be, and cools down until then")
    parser.add_argument("--tools", action="store_true", help="read tools as well")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    model = StaticModel.load()
    lessons = Lessons(options.work, model, options.seed)
    if options.start.suffix == ".npz":
        with np.load(options.start) as archive:
            student = Student({name: torch.tensor(archive[name]) for name in archive.files}, model.dimensions)
    else:
        student = Student(starting_weights(options.start), model.dimensions)
        student.align(lessons)
    if options.tools:
        lessons.read_tools(student)
    groups = (
        (options.rate, [value for name, value in student.learned.items() if name != "points.weight"]),
        (3 * options.rate, [student.learned["points.weight"]]),
        (1e-2, [student.sharpness]),
    )
    optimizer = torch.optim.AdamW(
        [{"params": values} for _, values in groups], lr=options.rate, weight_decay=0.01, betas=(0.9, 0.98)
    )
    started, recent = time.monotonic(), 0.0
    for step in range(options.steps):
        done = max(step / options.steps, (time.monotonic() - started) / 60 / options.minutes)
        if done >= 1:
            break
        for group, (rate, _) in zip(optimizer.param_groups, groups, strict=True):
            group["lr"] = rate * min(1.0, (step + 1) / 100) * max(0.02, 1 - done)
        total = loss(student, lessons, lessons.drawn(options.batch))
        optimizer.zero_grad()
        total.backward()
        torch.nn.utils.clip_grad_norm_(list(student.learned.values()), 1.0)
        optimizer.step()
        student.remember(step)
        recent = float(total.detach()) if not step else 0.95 * recent + 0.05 * float(total.detach())
        if step % 25 == 24:
            print(step + 1, round(recent, 3), round(time.monotonic() - started), flush=True)
            np.savez(options.out, **student.result())
    np.savez(options.out, **student.result())


if __name__ == "__main__":
    main()
