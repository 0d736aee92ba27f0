"""A vocabulary is used where it is, and never fetched."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from toolcrib.audit import tokenizers
from toolcrib.audit.tokenizers import find_tokenizer


class Encoding:
    def encode_ordinary(self, text: str) -> list[int]:
        return [1] * len(text.split())


def package(name: str, asked: list[str]) -> ModuleType:
    module = ModuleType(name)
    module.__spec__ = __import__("importlib.machinery", fromlist=["ModuleSpec"]).ModuleSpec(name, None)

    def get_encoding(vocabulary: str) -> Encoding:
        asked.append(vocabulary)
        return Encoding()

    module.get_encoding = get_encoding
    return module


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = tokenizers.importlib.util.find_spec
    hidden = {"bpe_openai", "tiktoken", "litellm", "llama_index"}
    monkeypatch.setattr(
        tokenizers.importlib.util,
        "find_spec",
        lambda name: None if name in hidden and name not in sys.modules else real(name),
    )


def test_without_a_vocabulary_there_is_no_tokenizer() -> None:
    assert find_tokenizer({}) is None


def test_a_package_that_carries_the_vocabulary_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setitem(sys.modules, "bpe_openai", package("bpe_openai", asked))
    found = find_tokenizer({})
    assert found is not None and found.count("a b c") == 3 and asked == ["o200k_base"]


def test_a_cache_is_used_only_with_the_right_file_in_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []
    monkeypatch.setitem(sys.modules, "tiktoken", package("tiktoken", asked))
    environ = {"TIKTOKEN_CACHE_DIR": str(tmp_path)}
    assert find_tokenizer(environ) is None
    file = tmp_path / tokenizers._CACHED_NAME
    file.write_bytes(b"something else")
    assert find_tokenizer(environ) is None and not asked
    monkeypatch.setattr(tokenizers, "_CACHED_SHA256", tokenizers.hashlib.sha256(b"something else").hexdigest())
    found = find_tokenizer(environ)
    assert found is not None and asked == ["o200k_base"]


def test_a_package_that_fails_leaves_the_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = package("bpe_openai", [])
    del broken.get_encoding
    monkeypatch.setitem(sys.modules, "bpe_openai", broken)
    assert find_tokenizer({}) is None
