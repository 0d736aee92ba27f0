"""Texts as the numbers that the reader of sentences was trained on."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.errors import ModelUnavailable
from toolcrib.retrieval.wordpiece import PIECES_FILE, WordPieces

PIECES = WordPieces.load()
NAMES = gzip.decompress(PIECES_FILE.read_bytes()).decode().split("\n")


def pieces(text: str, at_most: int = 64) -> list[str]:
    return [NAMES[number] for number in PIECES.numbers(text, at_most=at_most)][1:-1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Send a message", ["send", "a", "message"]),
        ("unaffable", ["una", "##ffa", "##ble"]),
        ("don't", ["don", "'", "t"]),
        ("Café ÀÉ", ["cafe", "ae"]),
        ("日本 x", ["日", "本", "x"]),
        ("a\u200bb\ufeff\x00c", ["abc"]),
        ("tab\tand\nline", ["tab", "and", "line"]),
        ("x" * 101, ["[UNK]"]),
        ("🙂", ["[UNK]"]),
        ("", []),
    ],
)
def test_a_text_is_cut_as_the_model_learned_it(text: str, expected: list[str]):
    assert pieces(text) == expected


def test_a_long_text_keeps_its_beginning_and_both_marks():
    numbers = PIECES.numbers("word " * 500, at_most=10)
    assert len(numbers) == 10
    assert (NAMES[numbers[0]], NAMES[numbers[-1]]) == ("[CLS]", "[SEP]")


@given(st.text(alphabet=st.characters(), max_size=300))
def test_any_string_gives_known_numbers_within_the_limit(text: str):
    numbers = PIECES.numbers(text, at_most=32)
    assert 2 <= len(numbers) <= 32
    assert all(0 <= number < len(NAMES) for number in numbers)


@pytest.mark.parametrize(
    "content",
    [b"", b"no gzip", gzip.compress(b"only\nwords"), gzip.compress(b"x")[:-4]],
    ids=["empty", "plain", "no pieces", "cut off"],
)
def test_a_damaged_list_is_said_to_be_damaged(tmp_path: Path, content: bytes):
    path = tmp_path / "pieces.gz"
    path.write_bytes(content)
    with pytest.raises(ModelUnavailable, match="word pieces"):
        WordPieces.load(path)


@pytest.mark.parametrize("code", range(128))
def test_a_character_of_ascii_is_cut_alike_in_texts_of_ascii_and_in_others(code: int):
    text = f"Tell{chr(code)}me{chr(code)}{chr(code)}more"
    assert pieces(f"{text} 🙂") == [*pieces(text), "[UNK]"]
