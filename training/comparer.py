"""Trains the comparer: it learns to say which of a query's best tools does what is asked, and whether any does.

The sentence reader that ships stays as it is; its states of all texts and tools are worked out once. Every lesson is a
query with a few tools: those that the reader finds nearest in a catalog of some servers, drawn anew each time, with the
right one among them or, for a third, taken out together with all that resembles it. The aim is the right tool or, if
there is none, "none", which stands at log odds of 0. A need that is near and not met is shown with the tools of the
server that it was written for. Two or three needs in one sentence have as many right tools, each judged beside the wrong
ones alone. How near the whole sentences are is not told: the search knows that already, and better for what was
learned than for what was not.
"""

import argparse
import json
import random
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as functional
from reader import HEADS, LAYERS, WIDTH, padded
from reader_export import rounded
from torch import Tensor

from toolcrib.limits import READER_MAX_PIECES, READER_TOOL_PIECES
from toolcrib.retrieval.base import PlainDocument
from toolcrib.retrieval.semantic import READ_WEIGHT, READER_SHARE, StaticModel, tool_text
from toolcrib.retrieval.vectors import MODEL_DIRECTORY
from toolcrib.retrieval.wordpiece import WordPieces

_SHARES = {"search": 5.0, "plain": 5.0, "request": 6.0, "story": 3.0, "miss": 3.0, "pair": 4.0, "several": 4.0}
"""How often each kind of text is drawn."""
_KINDS = ("search", "plain", "request", "story", "miss")
_TAKEN = (4, 2)
"""Layers after which states are taken. The last layers know the texts that they were taught with, and mislead."""
_HIDDEN_PIECES = 0.1
"""Share of the pieces that are not shown."""
_WIDE, _HIDDEN = 32, 64
_SEVERAL = 36_000
_JOINED = (
    " and ", ", then ", ". ", " and then ", ", and ", "; ", " and also ", ". Also, ", ". After that ", ", ",
    " so that I can ", " before I ",
)  # fmt: skip
_NEAREST = 400
_LISTED = 8
_ABSENT = 0.35
_SAME, _ALIKE = 0.7, 0.82
"""Nearness of two tools from which on the second is taken out with the first, or is not shown as wrong beside it."""
_AVERAGING = 0.998

Row = tuple[str, list[int], str]
"""A text, the places of the tools that it asks for, and its kind."""


def reader_weights() -> dict[str, Tensor]:
    """The weights of the reader that ships."""
    with np.load(MODEL_DIRECTORY / "reader.npz") as archive:
        arrays = {name: archive[name] for name in archive.files}
    weights = {"numbering": torch.tensor(arrays["numbering"].astype(np.int64))}
    weights["pieces"] = torch.tensor(arrays["codes"].astype(np.float32) * arrays["scales"].astype(np.float32)[:, None])
    weights["places"] = torch.tensor(arrays["places"].astype(np.float32))
    for name, values in arrays.items():
        part = name.removesuffix(".codes")
        if name.endswith(".codes"):
            scales = arrays[f"{part}.scales"].astype(np.float32)
            weights[f"{part}.weight"] = torch.tensor(values.astype(np.float32) * scales)
        elif name.endswith((".weight", ".shift")):
            weights[name] = torch.tensor(values.astype(np.float32))
    return weights


class States:
    """The states of texts, one after the other, and where each begins."""

    def __init__(self, weights: dict[str, Tensor], texts: list[list[int]]) -> None:
        sizes = torch.tensor([len(text) for text in texts])
        self.starts = torch.cat([torch.zeros(1, dtype=torch.long), sizes.cumsum(0)])
        self.flat = torch.empty((int(self.starts[-1]), 2 * WIDTH), dtype=torch.bfloat16)
        self.points = torch.empty((len(texts), weights["points.weight"].shape[1]))
        for some in torch.tensor(sorted(range(len(texts)), key=lambda at: len(texts[at]))).split(128):
            numbers, there = padded([texts[at] for at in some.tolist()])
            last, taken = read(weights, numbers, there)
            sentences = (last * there[..., None]).sum(1) / there.sum(1, keepdim=True)
            self.points[some] = functional.normalize(sentences @ weights["points.weight"] + weights["points.shift"], dim=1)
            for row, at in enumerate(some.tolist()):
                self.flat[self.starts[at] : self.starts[at + 1]] = taken[row, : len(texts[at])]

    def of(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """The states of some texts, padded, and which of them are there."""
        first = self.starts[places]
        sizes = self.starts[places + 1] - first
        along = torch.arange(int(sizes.max()))
        there = along < sizes[..., None]
        return self.flat[(first[..., None] + along).clamp(max=len(self.flat) - 1)], there


@torch.no_grad()
def read(weights: dict[str, Tensor], numbers: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
    """The last states, and those that are taken, as `toolcrib.retrieval.sentences` has them."""

    def linear(name: str, states: Tensor) -> Tensor:
        return functional.linear(states, weights[f"{name}.weight"].T, weights[f"{name}.shift"])

    def norm(name: str, states: Tensor) -> Tensor:
        return functional.layer_norm(states, (WIDTH,), weights[f"{name}.weight"], weights[f"{name}.shift"], 1e-12)

    count, longest = numbers.shape
    states = norm("first", weights["pieces"][weights["numbering"][numbers]] + weights["places"][:longest])
    mask = torch.where(there.bool(), 0.0, -1e9)[:, None, None, :].expand(count, 1, longest, longest)
    after: dict[int, Tensor] = {}
    with torch.autocast("cpu", torch.bfloat16):
        states = states.bfloat16()
        for layer in range(LAYERS):
            looks = linear(f"{layer}.looks", states).float().view(count, longest, 3, HEADS, WIDTH // HEADS)
            with torch.autocast("cpu", enabled=False):
                looked = functional.scaled_dot_product_attention(*looks.permute(2, 0, 3, 1, 4), attn_mask=mask)
            seen = linear(f"{layer}.seen", looked.transpose(1, 2).reshape(count, longest, WIDTH))
            states = norm(f"{layer}.after_looking", states + seen)
            wide = functional.silu(1.702 * linear(f"{layer}.widens", states)) / 1.702
            states = norm(f"{layer}.after_thinking", states + linear(f"{layer}.narrows", wide))
            after[layer + 1] = states.bfloat16()
    return states.float(), torch.cat([after[layer] for layer in _TAKEN], 2)


class Side(torch.nn.Module):
    """How the pieces of one text are seen beside those of the other."""

    def __init__(self) -> None:
        super().__init__()
        self.takes = torch.nn.Linear(2 * WIDTH, _WIDE)
        self.compares = torch.nn.Linear(3 * _WIDE + 1, _HIDDEN)
        self.gate = torch.nn.Linear(_WIDE, 1, bias=False)

    def pieces(self, states: Tensor) -> Tensor:
        """Pieces of length one."""
        with torch.autocast("cpu", torch.bfloat16):
            taken = self.takes(states)
        return functional.normalize(taken.float(), dim=-1)

    def shares(self, pieces: Tensor, there: Tensor) -> Tensor:
        """How much each piece matters."""
        return self.gate(pieces).squeeze(-1).masked_fill(~there, -1e9).softmax(-1)

    def compared(self, own: Tensor, other: Tensor, nearest: Tensor) -> Tensor:
        """What is made of pieces, their counterparts, and how near the nearest is."""
        return functional.relu(self.compares(torch.cat([own, other, own * other * 8, nearest[..., None]], -1)))


class Comparer(torch.nn.Module):
    """The comparer under training; computes what `toolcrib.retrieval.comparing` does."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.offered = Side(), Side()
        torch.nn.init.orthogonal_(self.asked.takes.weight)
        self.offered.takes.weight.data.copy_(self.asked.takes.weight.data)
        self.sharpness = torch.nn.Parameter(torch.tensor(1.5))
        self.first = torch.nn.Linear(4 * _HIDDEN + 2, _HIDDEN)
        self.last = torch.nn.Linear(_HIDDEN, 1)

    def forward(self, asked: Tensor, here: Tensor, offered: Tensor, there: Tensor) -> Tensor:
        """Log odds for the tools of each query: pieces (batch, pieces, wide) and (batch, tools, pieces, wide)."""
        near = torch.einsum("bid,bkjd->bkij", asked, offered)
        pull = near * torch.exp(self.sharpness)
        to_offered = pull.masked_fill(~there[:, :, None, :], -1e9).softmax(-1)
        to_asked = pull.masked_fill(~here[:, None, :, None], -1e9).softmax(-2)
        near_offered = near.masked_fill(~there[:, :, None, :], -1).amax(-1)
        near_asked = near.masked_fill(~here[:, None, :, None], -1).amax(-2)
        each = asked[:, None].expand(-1, offered.shape[1], -1, -1)
        from_asked = self.asked.compared(each, torch.einsum("bkij,bkjd->bkid", to_offered, offered), near_offered)
        from_offered = self.offered.compared(offered, torch.einsum("bkij,bid->bkjd", to_asked, asked), near_asked)
        from_asked = from_asked.masked_fill(~here[:, None, :, None], 0.0)
        from_offered = from_offered.masked_fill(~there[..., None], 0.0)
        share_asked, share_offered = self.asked.shares(asked, here)[:, None], self.offered.shares(offered, there)
        of_asked = (near_offered * share_asked).sum(-1)
        seen = torch.cat(
            [
                (from_asked * share_asked[..., None]).sum(2), (from_offered * share_offered[..., None]).sum(2),
                from_asked.amax(2), from_offered.amax(2),
                of_asked[..., None], (near_asked * share_offered).sum(-1)[..., None],
            ],
            -1,
        )  # fmt: skip
        return self.last(functional.relu(self.first(seen))).squeeze(-1) + 8 * (of_asked - 0.5)


class Lessons:
    """Texts with their tools, and lists of tools to choose from."""

    def __init__(self, work: Path, seed: int) -> None:
        self.draw, self.chance = random.Random(seed), np.random.default_rng(seed)
        learned = json.loads((work / "reader_rows.json").read_text("utf-8"))
        tools = learned["catalogue"]
        rows = [
            (text, [place], kind if kind in _KINDS else "pair")
            for text, place, kind in learned["rows"]
            if kind not in ("sentence", "name")
        ]
        rows += several(rows, tools, self.draw)
        self.right = [right for _, right, _ in rows]
        kinds = np.array([kind for _, _, kind in rows])
        self.kinds = kinds
        self.by_kind = {kind: np.flatnonzero(kinds == kind) for kind in _SHARES}
        servers: dict[str, int] = {}
        # A tool of a pair has no server: each is one of its own.
        named = [tool["server"] or f" {place}" for place, tool in enumerate(tools)]
        self.server = np.array([servers.setdefault(name, len(servers)) for name in named])
        self.servers = len(servers)
        model, pieces, weights = StaticModel.load(), WordPieces.load(), reader_weights()
        documents = [
            PlainDocument(
                key=str(place), digest=f"comparer:{place}", leaf=tool["name"], toolset=tool["server"] or "",
                description=tool["description"] or "", parameters=tuple(map(str, tool["params"][:20])), nested="",
            )
            for place, tool in enumerate(tools)
        ]  # fmt: skip
        self.offered = States(weights, [pieces.numbers(tool_text(each), at_most=READER_TOOL_PIECES) for each in documents])
        self.asked = States(weights, [pieces.numbers(text, at_most=READER_MAX_PIECES) for text, _, _ in rows])
        words = functional.normalize(torch.tensor(model.embed_documents(documents).astype(np.float32)), dim=1)
        near = functional.normalize(words + READ_WEIGHT * self.offered.points, dim=1)
        queries = torch.tensor(np.stack([model.embed_query(text) for text, _, _ in rows]))
        queries = functional.normalize((1 - READER_SHARE) * queries + READER_SHARE * self.asked.points, dim=1)
        self.nearest = torch.cat([(some @ near.T).topk(_NEAREST, dim=1).indices for some in queries.split(2_000)]).numpy()
        self.near = near.numpy()

    def drawn(self, size: int) -> list[int]:
        """Texts of like length, so that little is padded."""
        kinds = self.draw.choices(list(_SHARES), list(_SHARES.values()), k=4 * size)
        sizes = self.asked.starts[1:] - self.asked.starts[:-1]
        pool = sorted((int(self.chance.choice(self.by_kind[kind])) for kind in kinds), key=lambda at: int(sizes[at]))
        start = self.draw.randrange(4) * size
        return pool[start : start + size]

    def listed(self, at: int) -> tuple[list[int], int]:
        """Tools to choose from, and how many of the first are right."""
        right, found = self.right[at], self.nearest[at]
        here = self.chance.random(self.servers) < 10 ** self.chance.uniform(-2.2, 0.0)
        if self.kinds[at] == "miss":
            near = found[self.server[found] == self.server[right[0]]].tolist()[:_LISTED]
            return self._filled(near if right[0] in near else [right[0], *near[: _LISTED - 1]], right), 0
        absent = len(right) == 1 and self.chance.random() < _ABSENT
        here[self.server[right]] = not (absent and self.chance.random() < 0.5)
        found = found[here[self.server[found]]]
        alike = (self.near[found] @ self.near[right].T).max(axis=1)
        if absent:
            return self._filled(found[alike < _SAME].tolist()[:_LISTED], right), 0
        return self._filled([*right, *found[alike < _ALIKE].tolist()[: _LISTED - len(right)]], right), len(right)

    def _filled(self, tools: list[int], right: list[int]) -> list[int]:
        while len(tools) < _LISTED:
            tool = int(self.chance.integers(len(self.near)))
            if tool not in tools and float((self.near[right] @ self.near[tool]).max()) < _SAME:
                tools.append(tool)
        return tools


def several(rows: list[Row], tools: list[dict[str, str]], draw: random.Random) -> list[Row]:
    """Two or three needs in one sentence, of one server or of any."""
    alone = [row for row in rows if row[2] in ("search", "plain", "request", "pair") and len(row[0]) < 110]
    by_kind: dict[str, list[Row]] = {}
    by_server: dict[str, list[Row]] = {}
    for row in alone:
        by_kind.setdefault(row[2], []).append(row)
        by_server.setdefault(tools[row[1][0]]["server"] or "", []).append(row)
    made: list[Row] = []
    while len(made) < _SEVERAL:
        text, right, kind = draw.choice(alone)
        right = list(right)
        for _ in range(2 if draw.random() < 0.25 else 1):
            near = by_server[tools[right[0]]["server"] or ""] if draw.random() < 0.6 else by_kind[kind]
            more, other, like = draw.choice(near)
            if like == kind and other[0] not in right:
                joined = draw.choice(_JOINED)
                more = more if joined.startswith(". ") or draw.random() < 0.3 else more[0].lower() + more[1:]
                text, right = text.rstrip(".") + joined + more.rstrip("."), [*right, other[0]]
        if len(right) > 1:
            made.append((text, right, "several"))
    return made


def partly(there: Tensor) -> Tensor:
    """Some of the pieces, the first of each text among them."""
    shown = there & (torch.rand(there.shape) >= _HIDDEN_PIECES)
    shown[..., 0] = there[..., 0]
    return shown


def loss(judged: Tensor, right: Tensor) -> Tensor:
    """How far the right tools, or "none", are from being chosen; right tools are not measured against each other."""
    full = torch.cat([judged, torch.zeros(len(judged), 1)], 1)
    column = torch.arange(full.shape[1])
    is_right = column < right[:, None]
    none = full.shape[1] - 1
    total = torch.zeros(len(full))
    for place in range(int(right.max().clamp(min=1))):
        asked = right > place if place else torch.ones(len(full), dtype=torch.bool)
        wanted = torch.where(right > 0, place, none)
        hidden = full.masked_fill(is_right & (column != wanted[:, None]), -1e9)
        total = total + torch.where(asked, functional.cross_entropy(hidden, wanted, reduction="none"), 0.0)
    return (total / right.clamp(min=1)).mean()


def export(trained: dict[str, Tensor], out: Path) -> None:
    """Writes the file that ships."""
    reader = StaticModel.load().reader
    assert reader is not None
    arrays: dict[str, np.ndarray] = {}
    for name, values in trained.items():
        weights = values.numpy()
        if name.endswith("takes.weight"):
            part = name.removesuffix(".weight")
            arrays[f"{part}.codes"], arrays[f"{part}.scales"] = rounded(weights.T, 0)
        elif name.endswith("gate.weight"):
            arrays[name.removesuffix(".weight")] = weights.reshape(-1)
        else:
            arrays[name.replace(".bias", ".shift")] = np.ascontiguousarray(weights.T)
    meta = {"format": 1, "version": "1", "reader": reader.mark}
    arrays["meta"] = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
    np.savez(out, **arrays)


def main() -> None:
    """Trains, and writes the file of the model folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path, help="folder with reader_rows.json")
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=4_000)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--batch", type=int, default=96)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    lessons, comparer = Lessons(options.work, options.seed), Comparer()
    optimizer = torch.optim.AdamW(comparer.parameters(), lr=options.rate, weight_decay=0.01, betas=(0.9, 0.98))
    average = {name: value.detach().clone() for name, value in comparer.named_parameters()}
    started, recent = time.monotonic(), 0.0
    for step in range(options.steps):
        optimizer.param_groups[0]["lr"] = options.rate * min(1.0, (step + 1) / 100) * max(0.02, 1 - step / options.steps)
        chosen = lessons.drawn(options.batch)
        lists = [lessons.listed(at) for at in chosen]
        asked, here = lessons.asked.of(torch.tensor(chosen))
        offered, there = lessons.offered.of(torch.tensor([tools for tools, _ in lists]))
        here, there = partly(here), partly(there)
        judged = comparer(comparer.asked.pieces(asked), here, comparer.offered.pieces(offered), there)
        total = loss(judged, torch.tensor([right for _, right in lists]))
        optimizer.zero_grad()
        total.backward()
        torch.nn.utils.clip_grad_norm_(comparer.parameters(), 1.0)
        optimizer.step()
        share = min(_AVERAGING, (step + 1) / (step + 10))
        for name, value in comparer.named_parameters():
            average[name].mul_(share).add_(value.detach(), alpha=1 - share)
        recent = float(total.detach()) if not step else 0.98 * recent + 0.02 * float(total.detach())
        if step % 100 == 99:
            print(step + 1, round(recent, 4), round(time.monotonic() - started), flush=True)
            export(average, options.out)
    export(average, options.out)


if __name__ == "__main__":
    main()
