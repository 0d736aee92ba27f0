"""Trains the joint reader: it reads a query and a tool together and says whether the tool does what is asked.

It begins as all-MiniLM-L6-v2 reading both apart: a piece hardly looks at those of the other text (a learned bias by layer
and head, -2.5 at first), and the judgement is the cosine of both. So it tells something from the start, and learns to look
across from there; one that began with both texts in one row had learned next to nothing after 32,000 pairs. A lesson is a
sentence with three tools, the nearest of a catalog of some servers that is drawn anew each time, the right one among them
or not. The aim is the right tool or "none", which stands at log odds of 0. Needs that are near and not met are shown with
the tools of their server.

Of the lists without the right tool every fifth has another that does it. So 63,021 lists were read and judged
(`judged.tsv.gz`, by check sums), and teach what "none" is; most of those that are made show the right tool. Judged lists
were chosen for being hard, and so a tool that looks right is wrong in most of them: unless as many are shown that have one,
the reader doubts whatever is short and plain ("switch the lamp off", `turn_off_light`).

Then come invented servers (`servers.txt.gz`): some tools each, requests that one of them meets in other words, and requests
that look as if they belonged there and are met by none, with a tool that would meet each. Both kinds were written along with
the tools, so that "none" is known and need not be judged.

Reads the tools, the pairs, what was written for this project (`needs.tsv.gz`, `abilities.tsv.gz`, `asked.tsv.gz`,
`servers.txt.gz`) and model.safetensors of all-MiniLM-L6-v2. Writes the weights as they are; `joint_export.py` makes the file
that ships.
"""

import argparse
import csv
import gzip
import hashlib
import json
import random
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as functional
from needs import tool_key, written_needs
from reader import HEADS, LAYERS, WIDTH, starting_weights
from servers import invented_servers
from torch import Tensor

from toolcrib.limits import READER_MAX_PIECES
from toolcrib.retrieval.base import PlainDocument
from toolcrib.retrieval.semantic import StaticModel, joint_text
from toolcrib.retrieval.wordpiece import WordPieces

_SHARES = {"search": 5.0, "plain": 5.0, "request": 6.0, "story": 3.0, "miss": 2.5, "pair": 3.0, "asked": 8.0, "broad": 4.0}
"""How often each kind of text is drawn."""
_HERE = Path(__file__).parent
_PAIRS_PER_TOOL = 20
_NEAREST = 400
_LISTED = 3
_ABSENT, _ABSENT_UNJUDGED = 0.15, 0.38
"""How many of the lists that are made are without the right tool, beside judged ones and without these."""
_MET = 0.42
"""How many of the judged lists in a step have a tool that does it."""
_ELSEWHERE = 0.3
"""How many requests to invented servers are shown with the tools of other servers, too."""
_EACH = 0.4
"""What the verdict on each tool counts beside the choice of one or none, which counts twice as much."""
_SAME, _ALIKE = 0.7, 0.82
"""Nearness of two tools from which on the second is taken out with the first, or is not shown as wrong beside it."""
_APART = 2
"""Layers that read both texts apart, and stay as they were."""
_THINKS = 192
_AVERAGING = 0.997


class Layer(torch.nn.Module):
    """A layer of attention over the pieces of both texts."""

    def __init__(self) -> None:
        super().__init__()
        self.looks, self.seen = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.widens, self.narrows = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)
        self.after_looking = torch.nn.LayerNorm(WIDTH, eps=1e-12)
        self.after_thinking = torch.nn.LayerNorm(WIDTH, eps=1e-12)
        self.left_out = torch.nn.Dropout(0.0)
        self.across = torch.nn.Parameter(torch.full((HEADS,), -2.5))

    def forward(self, states: Tensor, mask: Tensor, differ: Tensor | None) -> Tensor:
        """The states after it; `differ` is where two pieces are of different texts."""
        count, longest, _ = states.shape
        asks, offers, holds = self.looks(states).view(count, longest, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        bias = mask if differ is None else mask + differ * self.across[None, :, None, None]
        pull = (asks @ offers.transpose(-1, -2)).float() * (WIDTH // HEADS) ** -0.5 + bias
        looked = self.seen((pull.softmax(-1).bfloat16() @ holds).transpose(1, 2).reshape(count, longest, WIDTH))
        states = self.after_looking(states + (looked if differ is None else self.left_out(looked)))
        thought = self.narrows(functional.silu(1.702 * self.widens(states)) / 1.702)
        return self.after_thinking(states + (thought if differ is None else self.left_out(thought)))


class Joint(torch.nn.Module):
    """The joint reader under training; computes what `toolcrib.retrieval.joint` does."""

    def __init__(self, start: dict[str, Tensor]) -> None:
        super().__init__()
        self.pieces, self.places = start["pieces"], start["places"]
        self.first = torch.nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS))
        self.side = torch.nn.Parameter(torch.zeros(WIDTH))
        self.thinks, self.last = torch.nn.Linear(4 * WIDTH, _THINKS), torch.nn.Linear(_THINKS, 1)
        torch.nn.init.zeros_(self.last.weight)
        torch.nn.init.zeros_(self.last.bias)
        self.worth, self.usual = torch.nn.Parameter(torch.tensor(10.0)), torch.nn.Parameter(torch.tensor(0.45))
        self.take("first", self.first, start)
        for number, layer in enumerate(self.layers):
            for name in ("looks", "seen", "widens", "narrows", "after_looking", "after_thinking"):
                self.take(f"{number}.{name}", getattr(layer, name), start)

    @staticmethod
    def take(name: str, part: torch.nn.Module, start: dict[str, Tensor]) -> None:
        """Takes over where a part begins; the products of `reader.py` have their columns first."""
        weight = start[f"{name}.weight"]
        part.weight.data.copy_(weight.T if weight.ndim > 1 else weight)  # type: ignore[union-attr,operator]
        part.bias.data.copy_(start[f"{name}.shift"])  # type: ignore[union-attr,operator]

    def parts(self) -> tuple[list[torch.nn.Parameter], list[torch.nn.Parameter]]:
        """What is learned of what there was, and what is new."""
        new = ("side", "thinks", "last", "worth", "usual")
        fixed = ("first", *(f"layers.{number}." for number in range(_APART)))
        learned = [(name, each) for name, each in self.named_parameters() if not name.startswith(fixed)]
        is_new = [name.startswith(new) or name.endswith("across") for name, _ in learned]
        old = [each for (_, each), fresh in zip(learned, is_new, strict=True) if not fresh]
        return old, [each for (_, each), fresh in zip(learned, is_new, strict=True) if fresh]

    def forward(self, numbers: Tensor, sides: Tensor, there: Tensor, places: Tensor) -> Tensor:
        """Log odds for each pair."""
        states = self.first(self.pieces[numbers] + self.places[places])
        away, differ = ~there[:, None, None, :], sides[:, None, :, None] != sides[:, None, None, :]
        alone, mask = torch.where(away | differ, -1e9, 0.0), torch.where(away, -1e9, 0.0)
        with torch.autocast("cpu", torch.bfloat16):
            states = states.bfloat16()
            for number, layer in enumerate(self.layers):
                if number == _APART:
                    states = states + (self.side * sides[..., None]).bfloat16()
                states = layer(states, alone, None) if number < _APART else layer(states, mask, differ.float())
        states = states.float()
        one, other = (self.mean(states, there & (sides == side)) for side in (0, 1))
        seen = torch.cat([one * other * 20, (one - other).abs() * 10, one * 5, other * 5], 1)
        thought = self.last(functional.relu(self.thinks(seen))).squeeze(-1)
        return thought + self.worth * ((one * other).sum(1) - self.usual)

    @staticmethod
    def mean(states: Tensor, there: Tensor) -> Tensor:
        """The mean state of a text, of length one."""
        return functional.normalize((states * there[..., None]).sum(1) / there.sum(1, keepdim=True), dim=-1)


Pair = tuple[list[int], list[int]]
List = tuple[int, list[int], list[int]]
"""A text, the tools that it is shown with, and which of these are right."""


def padded(pairs: list[Pair]) -> tuple[Tensor, ...]:
    """Numbers of pieces, which text each is of, which are there, and their places in their text."""
    longest = max(len(asked) + len(offered) for asked, offered in pairs)
    numbers, sides, there, places = (torch.zeros((len(pairs), longest), dtype=torch.long) for _ in range(4))
    for row, (asked, offered) in enumerate(pairs):
        here, size = len(asked), len(asked) + len(offered)
        numbers[row, :size] = torch.tensor(asked + offered)
        sides[row, here:size] = 1
        there[row, :size] = 1
        places[row, :size] = torch.cat([torch.arange(here), torch.arange(len(offered))])
    return numbers, sides, there.bool(), places


class Lessons:
    """Texts with their tools, and lists of tools to choose from."""

    def __init__(self, catalogue: Path, pairs: Path, seed: int, absent: float) -> None:
        self.absent = absent
        self.draw, self.chance = random.Random(seed), np.random.default_rng(seed)
        tools = [json.loads(line) for line in catalogue.read_text("utf-8").splitlines()]
        rows = written_needs(tools)
        rows += asked_for(tools)
        requests = invented_requests(tools)
        first = len(rows)
        rows += [(text, right[0], "invented") for text, _, right in requests]
        rows += paired([json.loads(line) for line in pairs.read_text("utf-8").splitlines()], tools, random.Random(3))
        self.right = np.array([place for _, place, _ in rows])
        kinds = np.array([kind for _, _, kind in rows])
        self.by_kind = {kind: np.flatnonzero(kinds == kind) for kind in _SHARES}
        self.is_miss = kinds == "miss"
        servers: dict[str, int] = {}
        # A tool of a pair has no server: each is one of its own.
        named = [tool["server"] or f" {place}" for place, tool in enumerate(tools)]
        self.server = np.array([servers.setdefault(name, len(servers)) for name in named])
        model, pieces = StaticModel.load(), WordPieces.load()
        documents = [
            PlainDocument(
                key=str(place), digest=f"joint:{place}", leaf=tool["name"], toolset="",
                description=tool["description"] or "", parameters=tuple(map(str, tool["params"][:20])), nested="",
            )
            for place, tool in enumerate(tools)
        ]  # fmt: skip
        self.offered = [pieces.numbers(joint_text(each), at_most=READER_MAX_PIECES) for each in documents]
        self.asked = [pieces.numbers(text, at_most=READER_MAX_PIECES) for text, _, _ in rows]
        self.judged = sorted(judged_lists(rows, tools), key=lambda each: len(self.asked[each[0]]))
        lists = [(at, offered, right) for at, (_, offered, right) in enumerate(requests, first)]
        self.servers = list({offered[0]: offered for _, offered, _ in requests}.values())
        self.invented = sorted(lists, key=lambda each: len(self.asked[each[0]]))
        index = model.index(documents)
        assert model.readings is not None
        model.readings.wait(float("inf"))
        self.near = functional.normalize(torch.tensor(index.codes.astype(np.float32)), dim=1).numpy()
        self.points = np.stack([model.point(text) for text, _, _ in rows])
        queries = torch.tensor(self.points)
        tools_near = torch.tensor(self.near)
        self.nearest = torch.cat(
            [(some @ tools_near.T).topk(_NEAREST, dim=1).indices for some in queries.split(1_000)]
        ).numpy()

    def drawn(self, size: int, kind: str) -> tuple[list[Pair], Tensor]:
        """Pairs of texts of like length with their tools, list by list, and what is right of each: tools, or "none"."""
        lists = {"invented": self._invented, "judged": self._judged, "made": self._made}[kind](size)
        pairs = [(self.asked[at], self.offered[tool]) for at, tools, _ in lists for tool in tools]
        right = torch.zeros((len(lists), _LISTED + 1), dtype=torch.bool)
        for row, (_, _, places) in enumerate(lists):
            right[row, places or [_LISTED]] = True
        return pairs, right

    def _invented(self, size: int) -> list[List]:
        start = self.draw.randrange(max(1, len(self.invented) - 6 * size))
        some = self.invented[start : start + 6 * size]
        return [(each[0], *self.offering(*each)) for each in self.draw.sample(some, min(size, len(some)))]

    def offering(self, at: int, offered: list[int], right: list[int]) -> tuple[list[int], list[int]]:
        """Three tools of a server, half of the time with one that does what is asked of it, and which of them are right.

        Every request is shown with a right tool as often as without. If some had none ever, their very manner would tell:
        a first run learned from it that whatever is short and plain is not met.
        """
        if self.chance.random() < _ELSEWHERE:
            offered = [*self.draw.sample(self.servers, 1)[0], *self.draw.sample(self.servers, 1)[0], *offered]
        others = np.array([tool for tool in offered if tool not in right])
        others = others[(self.near[others] @ self.near[right].T).max(axis=1) < _ALIKE]
        near = others[np.argsort(-(self.near[others] @ self.points[at]))].tolist()
        if self.chance.random() < 0.25:
            near = self.draw.sample(near[:8], len(near[:8]))
        met = self.chance.random() < 0.5
        tools = self._filled([*([self.draw.choice(right)] if met else []), *near][:_LISTED], right[0])
        self.draw.shuffle(tools)
        return tools, [place for place, tool in enumerate(tools) if met and tool in right]

    def _judged(self, size: int) -> list[List]:
        start = self.draw.randrange(max(1, len(self.judged) - 8 * size))
        near = self.judged[start : start + 8 * size]
        met, unmet = [each for each in near if each[2]], [each for each in near if not each[2]]
        shown = self.draw.sample(met, min(len(met), int(_MET * size)))
        return shown + self.draw.sample(unmet, min(len(unmet), size - len(shown)))

    def _made(self, size: int) -> list[List]:
        kinds = self.draw.choices(list(_SHARES), list(_SHARES.values()), k=4 * size)
        pool = sorted((int(self.chance.choice(self.by_kind[kind])) for kind in kinds), key=lambda at: len(self.asked[at]))
        start = self.draw.randrange(4) * size
        return [(at, *self.listed(at)) for at in pool[start : start + size]]

    def listed(self, at: int) -> tuple[list[int], list[int]]:
        """Tools to choose from, and which of them are right."""
        right, found = int(self.right[at]), self.nearest[at]
        if self.is_miss[at]:
            near = [tool for tool in found[self.server[found] == self.server[right]].tolist() if tool != right]
            if not near or self.chance.random() < 0.3:
                near = found[self.near[found] @ self.near[right] < _SAME].tolist()
            return self._filled([*near[: _LISTED - 1], right], right), []
        here = self.chance.random(self.server.max() + 1) < 10 ** self.chance.uniform(-2.2, 0.0)
        absent = self.chance.random() < self.absent
        here[self.server[right]] = not (absent and self.chance.random() < 0.5)
        found = found[here[self.server[found]]]
        near = found[self.near[found] @ self.near[right] < (_SAME if absent else _ALIKE)].tolist()
        ease = self.chance.random()
        if ease < 0.2 and len(near) > 30:
            near = self.draw.sample(near[10:], _LISTED)
        elif ease >= 0.6:
            near = sorted(self.draw.sample(near[:10], min(_LISTED, len(near[:10]))), key=near.index)
        if absent:
            return self._filled(near[:_LISTED], right), []
        return self._filled([right, *(tool for tool in near if tool != right)][:_LISTED], right), [0]

    def _filled(self, tools: list[int], right: int) -> list[int]:
        while len(tools) < _LISTED:
            tool = int(self.chance.integers(len(self.near)))
            if tool not in tools and float(self.near[tool] @ self.near[right]) < _SAME:
                tools.append(tool)
        return tools


def written(name: str) -> list[list[str]]:
    """The rows of a file that was written for this project."""
    with gzip.open(_HERE / name, "rt", encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def asked_for(tools: list[dict[str, object]]) -> list[tuple[str, int, str]]:
    """Requests for written abilities and for broad tools (a whole app, a calculator), which are added to the tools."""
    places: dict[tuple[str, str], int] = {}
    abilities, asked = written("abilities.tsv.gz"), written("asked.tsv.gz")
    for name, description, *_ in abilities + asked:
        if (name, description) not in places:
            places[name, description] = len(tools)
            tools.append({"name": name, "server": "", "description": description, "params": []})
    narrow = {(name, description) for name, description in abilities}
    return [
        (text, places[name, description], "asked" if (name, description) in narrow else "broad")
        for name, description, text in asked
    ]


def invented_requests(tools: list[dict[str, object]]) -> list[tuple[str, list[int], list[int]]]:
    """Requests to invented servers, the places of their tools, which are added to the others, and which are right."""
    requests: list[tuple[str, list[int], list[int]]] = []
    for server in invented_servers():
        places = list(range(len(tools), len(tools) + len(server.tools)))
        tools.extend(
            {"name": name, "server": f"invented {server.name}", "description": description, "params": []}
            for name, description in server.tools
        )
        requests += [(text, places, [places[place] for place in right]) for text, right in server.requests if right]
    return requests


def judged_lists(rows: list[tuple[str, int, str]], tools: list[dict[str, object]]) -> list[List]:
    """Lists of three tools that were read with a text, and which of them do what it asks."""
    texts = {hashlib.sha256(text.encode()).hexdigest()[:12]: at for at, (text, _, _) in enumerate(rows)}
    places = {tool_key(tool): place for place, tool in enumerate(tools)}
    return [
        (texts[text], [places[tool] for tool in offered], [] if verdict == "-" else [int(each) - 1 for each in verdict])
        for text, *offered, verdict in written("judged.tsv.gz")
        if text in texts and all(tool in places for tool in offered)
    ]


def paired(
    pairs: list[dict[str, object]], tools: list[dict[str, object]], draw: random.Random
) -> list[tuple[str, int, str]]:
    """Texts of pairs with the places of their tools, which are added to the others; some for each tool."""
    places: dict[tuple[object, object], int] = {}
    counts: dict[int, int] = {}
    rows: list[tuple[str, int, str]] = []
    draw.shuffle(pairs)
    for pair in pairs:
        key = (pair["name"], pair["description"])
        if key not in places:
            places[key] = len(tools)
            tools.append({"name": pair["name"], "server": "", "description": pair["description"], "params": pair["params"]})
        place = places[key]
        counts[place] = counts.get(place, 0) + 1
        if counts[place] <= _PAIRS_PER_TOOL:
            rows.append((str(pair["query"])[:300], place, "pair"))
    return rows


def loss(odds: Tensor, right: Tensor, *, each_known: bool) -> Tensor:
    """How far the judgements of lists are from what is right, and each of them, where the verdict on each is known."""
    chances = torch.cat([odds, torch.zeros(len(odds), 1)], 1).log_softmax(1)
    total = -0.95 * chances.masked_fill(~right, -1e9).logsumexp(1).mean() - 0.05 * chances.mean()
    if not each_known:
        return total
    each = functional.binary_cross_entropy_with_logits(odds, 0.03 + 0.94 * right[:, :_LISTED].float())
    return 2 * _EACH * total + _EACH * each


def main() -> None:
    """Trains, and writes the mean of the last weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("catalogue", type=Path, help="texts of real tools, JSON lines")
    parser.add_argument("pairs", type=Path, help="queries with their tools, JSON lines")
    parser.add_argument("start", type=Path, help="model.safetensors of all-MiniLM-L6-v2")
    parser.add_argument("out", type=Path)
    parser.add_argument("--resume", type=Path, help="what an earlier run wrote, to go on with")
    parser.add_argument("--minutes", type=float, default=70.0)
    parser.add_argument("--rate", type=float, default=1.5e-4)
    parser.add_argument("--judged", type=float, default=0.0, help="share of the steps with lists that were judged")
    parser.add_argument("--invented", type=float, default=0.0, help="share of the steps with requests to invented servers")
    parser.add_argument("--left-out", type=float, default=0.0, help="share of what a layer adds that is left out at random")
    parser.add_argument("--batch", type=int, default=43, help="lists in a step")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    torch.set_flush_denormal(True)
    lessons = Lessons(options.catalogue, options.pairs, options.seed, _ABSENT if options.judged else _ABSENT_UNJUDGED)
    student = Joint(starting_weights(options.start))
    if options.resume is not None:
        with np.load(options.resume) as archive:
            student.load_state_dict({name: torch.tensor(archive[name]) for name in archive.files})
    for layer in student.layers:
        layer.left_out.p = options.left_out  # type: ignore[union-attr]
    old, new = student.parts()
    optimizer = torch.optim.AdamW([{"params": old}, {"params": new}], lr=options.rate, weight_decay=0.01, betas=(0.9, 0.98))
    average = {name: value.clone() for name, value in student.state_dict().items()}
    started, recent, step = time.monotonic(), 0.0, 0
    while (done := (time.monotonic() - started) / 60 / options.minutes) < 1:
        rate = options.rate * min(1.0, (step + 1) / 100) * max(0.02, min(1.0, (1 - done) / 0.65))
        for group, times in zip(optimizer.param_groups, (1, 8 if options.resume is None else 4), strict=True):
            group["lr"] = rate * times
        shares = (options.invented, options.judged, 1 - options.invented - options.judged)
        (kind,) = lessons.draw.choices(("invented", "judged", "made"), shares)
        pairs, right = lessons.drawn(options.batch, kind)
        total = loss(student(*padded(pairs)).view(-1, _LISTED), right, each_known=kind != "made")
        optimizer.zero_grad()
        total.backward()
        torch.nn.utils.clip_grad_norm_([*old, *new], 1.0)
        optimizer.step()
        step += 1
        share = min(_AVERAGING, step / (step + 10))
        for name, value in student.state_dict().items():
            average[name].mul_(share).add_(value, alpha=1 - share)
        recent = float(total.detach()) if step == 1 else 0.98 * recent + 0.02 * float(total.detach())
        if step % 50 == 0:
            print(step, round(recent, 4), round(time.monotonic() - started), flush=True)
            np.savez(options.out, **{name: value.numpy() for name, value in average.items()})
    np.savez(options.out, **{name: value.numpy() for name, value in average.items()})


if __name__ == "__main__":
    main()
