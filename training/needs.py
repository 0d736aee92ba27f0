"""Gathers what the sentence reader learns from: texts, the tool that each asks for, and the tools of the catalogue.

`needs.tsv.gz` holds sentences written by hand for this project: ways to ask for each of some thousand public tools (as an
agent types it, in everyday words, as a request with particulars, as a longer story) and needs that are near and cannot be
met. Each line names the tool by the start of the check sum of its text, which is not part of this repository, then
the kind of sentence and the sentence.
Reads the work folder of `prepare.py`. Writes reader_tools.json, reader_rows.json and reader_texts.json into it.
"""

import argparse
import csv
import gzip
import hashlib
import json
import random
from pathlib import Path

from toolcrib.retrieval.text import in_words

_NEEDS = Path(__file__).parent / "needs.tsv.gz"
TAUGHT = ("search", "request", "miss", "metatool_single", "seal_tools")
"""Kinds of text that the teacher reads too; of everyday words it makes too little (the right tool is among its first five of
18,024 in 11 of 100), stories take it long."""
_AT_MOST = {"sentence": 12_000, "name": 6_000}
_QUERIES_PER_TOOL = {"metatool_single": 20}


def named(tool: dict[str, object], part: str) -> str:
    """A name without the mark of a scope."""
    return str(tool[part] or "").replace("@", " ")


def tool_key(tool: dict[str, object]) -> str:
    """What names a tool in `needs.tsv.gz`."""
    text = "\t".join(str(tool[part] or "") for part in ("server", "name", "description"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def written_needs(tools: list[dict[str, object]]) -> list[tuple[str, int, str]]:
    """Text, place of the tool that it asks for, and kind."""
    places = {tool_key(tool): place for place, tool in enumerate(tools)}
    with gzip.open(_NEEDS, "rt", encoding="utf-8", newline="") as file:
        lines = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [(text, places[key], kind) for key, kind, text in lines if key in places]


def main() -> None:
    """Writes the rows: text, place of its tool, kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    options = parser.parse_args()
    draw = random.Random(11)
    learned = json.loads((options.work / "examples.json").read_text("utf-8"))
    texts = json.loads((options.work / "texts.json").read_text("utf-8"))
    tools: list[dict[str, object]] = learned["tools"]
    rows = written_needs(tools)
    others: dict[str, list[tuple[str, int, str]]] = {"sentence": [], "name": []}
    for place, tool in enumerate(tools):
        if tool["sentences"]:
            others["sentence"].append((texts[draw.choice(tool["sentences"])], place, "sentence"))  # type: ignore[arg-type]
        others["name"].append((texts[tool["named"]], place, "name"))  # type: ignore[index]
    for kind, found in others.items():
        rows += draw.sample(found, _AT_MOST[kind])
    asked: dict[tuple[str, str, str], list[int]] = {}
    for pair in learned["pairs"]:
        asked.setdefault((pair["source"], pair["name"], pair["description"]), []).append(pair["query"])
    catalogue = [{key: tool[key] for key in ("name", "server", "description", "params")} for tool in tools]
    for (source, name, description), queries in asked.items():
        chosen = draw.sample(queries, min(len(queries), _QUERIES_PER_TOOL.get(source, 6)))
        rows += [(texts[query], len(catalogue), source) for query in chosen]
        catalogue.append({"name": name, "server": "", "description": description, "params": []})
    # Only the tools of the catalogue are judged by the teacher; those of the pairs stand behind them.
    judged = [
        f"{in_words(named(tool, 'server'))} {in_words(named(tool, 'name'))}: {str(tool['description'] or '')[:300]}"
        for tool in tools
    ]
    for name, value in (
        ("reader_tools", judged),
        ("reader_rows", {"rows": rows, "catalogue": catalogue}),
        ("reader_texts", [text for text, _, kind in rows if kind in TAUGHT]),
    ):
        (options.work / f"{name}.json").write_text(json.dumps(value, ensure_ascii=False), "utf-8")
    print(f"{len(rows):,} texts, {len(judged):,} tools that are judged, {len(catalogue):,} in all")


if __name__ == "__main__":
    main()
