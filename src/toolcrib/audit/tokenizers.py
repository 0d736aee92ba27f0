"""Exact token counts, where a vocabulary is on this machine already. Nothing is ever downloaded.

The estimate (characters over four) is stable and needs nothing; a vocabulary gives the figure that a model of that
family is billed for. Two ways to have one: the package `bpe_openai`, which carries it, or `tiktoken` with the file in
its cache directory or inside a package that brings it along. A file is used only if its digest is the right one,
because `tiktoken` would replace a wrong one from the network.
"""

import hashlib
import importlib
import importlib.util
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VOCABULARY = "o200k_base"

_CACHED_NAME = "fb374d419588a4632f3f557e76b4b70aebbca790"
"""How `tiktoken` names the file in its cache."""
_CACHED_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
_CACHE_VARIABLES = ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")
_CARRIERS = (
    ("litellm", ("litellm_core_utils/tokenizers", "llms/tokenizers")),
    ("llama_index", ("core/_static/tiktoken_cache",)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokenizer:
    """Counts tokens as one family of models does."""

    name: str
    count: Callable[[str], int]


def find_tokenizer(environ: Mapping[str, str]) -> Tokenizer | None:
    """The tokenizer that is here, or nothing."""
    return _from_package() or _from_cache(environ)


def _from_package() -> Tokenizer | None:
    if importlib.util.find_spec("bpe_openai") is None:
        return None
    try:
        encoding: Any = importlib.import_module("bpe_openai").get_encoding(VOCABULARY)
    except Exception:  # a package of somebody else's, in whatever version: without it there is the estimate
        return None
    return Tokenizer(name=VOCABULARY, count=lambda text: len(encoding.encode_ordinary(text)))


def _from_cache(environ: Mapping[str, str]) -> Tokenizer | None:
    if importlib.util.find_spec("tiktoken") is None:
        return None
    directory = next((place for place in _directories(environ) if _holds_vocabulary(place)), None)
    if directory is None:
        return None
    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(directory)
    try:
        encoding: Any = importlib.import_module("tiktoken").get_encoding(VOCABULARY)
    except Exception:  # as above
        return None
    finally:
        if before is None:
            del os.environ["TIKTOKEN_CACHE_DIR"]
        else:
            os.environ["TIKTOKEN_CACHE_DIR"] = before
    return Tokenizer(name=VOCABULARY, count=lambda text: len(encoding.encode_ordinary(text)))


def _directories(environ: Mapping[str, str]) -> Iterator[Path]:
    yield from (Path(environ[name]) for name in _CACHE_VARIABLES if environ.get(name))
    for package, places in _CARRIERS:
        spec = importlib.util.find_spec(package)
        for root in (spec.submodule_search_locations or ()) if spec else ():
            yield from (Path(root) / place for place in places)


def _holds_vocabulary(directory: Path) -> bool:
    try:
        content = (directory / _CACHED_NAME).read_bytes()
    except OSError:
        return False
    return hashlib.sha256(content).hexdigest() == _CACHED_SHA256
