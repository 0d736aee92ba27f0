"""Gathers the texts to learn from, and chooses the vocabulary and where its vectors start.

Reads tool texts and query → tool pairs (JSON lines), WordNet's data files, the vocabulary of all-MiniLM-L6-v2 and
the table of wordllama. Writes into the work folder: texts.json, examples.json, vocabulary.json, word_counts.json,
counts.npy and start.npy.
"""

import argparse
import json
import random
import re
from collections import Counter
from pathlib import Path

import numpy as np
from tokens import Tokens, fields

from toolcrib.retrieval.vocabulary import split

_PLAIN = re.compile(r"^(##)?[a-z0-9]+$")
_SENTENCE = re.compile(r"(?<=[.!?。])\s+|\n+")
_EXAMPLE = re.compile(r'"([^"]{8,120})"')
_SMOOTHING = 1e-3
"""Words more frequent than this share of all words start with less than half of their weight."""


def name_words(name: str) -> str:
    """The words of an identifier."""
    apart = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1 \2", re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name))
    return re.sub(r"[\W_]+", " ", apart).strip()


def lines(path: Path) -> list[dict[str, object]]:
    """The objects of a JSON lines file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def examples(catalogue: Path, pairs: Path) -> tuple[list[str], dict[str, list[dict[str, object]]]]:
    """All distinct texts, and tools and pairs that refer to them by number."""
    texts: dict[str, int] = {}

    def number(text: str) -> int:
        return texts.setdefault(text[:700], len(texts))

    tools: list[dict[str, object]] = []
    for line in lines(catalogue):
        name, description = name_words(str(line["name"])), str(line["description"] or "")
        sentences = [part.strip() for part in _SENTENCE.split(description) if len(part.strip()) > 12]
        tools.append({
            **{key: line[key] for key in ("name", "server", "description", "params")},
            "full": number(f"{name}. {description[:500]}"),
            "named": number(name.lower()),
            "sentences": [number(sentence[:250]) for sentence in sentences[:2]],
        })  # fmt: skip
    asked: list[dict[str, object]] = []
    for line in lines(pairs):
        description = str(line["description"] or "")
        asked.append({
            **{key: line[key] for key in ("name", "description", "params", "source")},
            "query": number(str(line["query"])[:300]),
            "full": number(f"{name_words(str(line['name']))}. {description[:500]}"),
        })  # fmt: skip
    return list(texts), {"tools": tools, "pairs": asked}


def wordnet(folder: Path) -> tuple[list[tuple[list[str], str, str]], list[str]]:
    """Words with the gist of their definition and their kind, and the examples of use."""
    senses: list[tuple[list[str], str, str]] = []
    uses: list[str] = []
    for kind in ("noun", "verb", "adj", "adv"):
        for line in (folder / f"data.{kind}").read_text("utf-8").splitlines():
            if line.startswith("  "):
                continue
            head, gloss = line.split(" | ", 1)
            parts = head.split()
            words = [parts[4 + 2 * at].replace("_", " ").split("(")[0] for at in range(int(parts[3], 16))]
            senses.append((words, gloss.strip().split('; "')[0].split(";")[0], kind))
            uses += _EXAMPLE.findall(gloss)
    return senses, uses


def start_vectors(tokens: list[str], folder: Path) -> np.ndarray:
    """The mean of the wordllama pieces of each token."""
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokenizer.no_padding()
    pieces = next(iter(load_file(folder / "weights" / "l2_supercat_256.safetensors").values())).astype(np.float32)
    table = np.zeros((len(tokens), pieces.shape[1]), np.float32)
    for row, token in enumerate(tokens):
        ids = tokenizer.encode(token.removeprefix("##"), add_special_tokens=False).ids
        # A piece of a word says less than a word; a word of several pieces says more than each of them.
        table[row] = pieces[ids].mean(0) * (0.5 if token.startswith("##") else len(ids) ** 0.5)
    return table


def general_texts(
    tokens: list[str], senses: list[tuple[list[str], str, str]], uses: list[str], used: Counter[str]
) -> list[str]:
    """Single words, examples of use, and pairs of words and definition (in turn), from the vocabulary alone."""
    known = set(tokens)

    def is_known(text: str) -> bool:
        words = split(text)
        return bool(words) and sum(word in known for word in words) >= 0.9 * len(words)

    words = [token for token in tokens if token.isalpha() and len(token) > 2]
    chosen = [use for use in dict.fromkeys(uses) if is_known(use)]
    random.Random(3).shuffle(chosen)
    ranked: list[tuple[int, str, str]] = []
    draw = random.Random(1)
    for lemmas, gloss, kind in senses:
        fitting = [lemma for lemma in lemmas if all(word in known for word in split(lemma))]
        if not fitting or not 3 <= len(split(gloss)) <= 25 or not is_known(gloss):
            continue
        if kind == "noun" and gloss.startswith(("any of ", "genus", "a genus", "type genus")):
            continue
        frequency = max(sum(used[word] for word in split(lemma)) for lemma in fitting)
        ranked.append((frequency, ", ".join(draw.sample(fitting, min(len(fitting), 3))), gloss))
    ranked.sort(key=lambda entry: -entry[0])
    singles = words + chosen[:24_000]
    singles = singles[: len(singles) // 2 * 2]  # the pairs begin at an even place
    return singles + [text for _, lemma, gloss in ranked[:36_000] for text in (lemma, gloss)]


def main() -> None:
    """Writes the work folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--catalogue", type=Path, required=True)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--wordnet", type=Path, required=True, help="folder with data.noun and its siblings")
    parser.add_argument("--minilm", type=Path, required=True, help="folder of all-MiniLM-L6-v2")
    parser.add_argument("--wordllama", type=Path, required=True, help="folder of the installed package")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    texts, learned = examples(options.catalogue, options.pairs)
    senses, uses = wordnet(options.wordnet)
    used: Counter[str] = Counter()
    for text in texts:
        used.update(set(split(text)))
    in_parameters = used.copy()
    for tool in learned["tools"]:
        in_parameters.update(set(split(" ".join(tool["params"]) + " " + str(tool["server"] or ""))))  # type: ignore[arg-type]
    defined: Counter[str] = Counter()
    for lemmas, gloss, _ in senses:
        defined.update(set(split(gloss)))
        for lemma in lemmas:
            defined[lemma.lower()] += 2
    base = [token for token in (options.minilm / "vocab.txt").read_text("utf-8").splitlines() if _PLAIN.match(token)]
    of_tools = [w for w, n in in_parameters.most_common() if n >= 4 and w.isascii() and w.isalpha() and 3 <= len(w) <= 24]
    of_language = [w for w, n in defined.most_common() if n >= 15 and w.isascii() and w.isalpha() and len(w) >= 4]
    tokens = list(dict.fromkeys(base + of_tools + of_language))
    counts = np.ones(len(tokens))
    reader = Tokens(tokens)
    for tool in learned["tools"]:
        for field in fields(tool, reader):
            np.add.at(counts, field, 1)
    shares = counts / counts.sum()
    start = start_vectors(tokens, options.wordllama) * (_SMOOTHING / (_SMOOTHING + shares))[:, None]
    np.save(options.work / "start.npy", (start / np.linalg.norm(start, axis=1).mean()).astype(np.float32))
    np.save(options.work / "counts.npy", shares)
    for name, value in (
        ("texts", texts), ("examples", learned), ("vocabulary", tokens),
        ("general", general_texts(tokens, senses, uses, used)),
        ("word_counts", {"tools": used, "dictionary": defined}),
    ):  # fmt: skip
        (options.work / f"{name}.json").write_text(json.dumps(value, ensure_ascii=False), "utf-8")
    print(f"{len(texts):,} texts, {len(learned['tools']):,} tools, {len(learned['pairs']):,} pairs, {len(tokens):,} tokens")


if __name__ == "__main__":
    main()
