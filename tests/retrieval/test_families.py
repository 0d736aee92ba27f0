"""Word families: every form of a word is found, whatever was marked before."""

from hypothesis import given
from hypothesis import strategies as st

from toolcrib.retrieval.families import Families
from toolcrib.retrieval.text import family, possible_forms

LETTERS = "abeinglsdyuxhc"
WORDS = st.text(alphabet=LETTERS, min_size=1, max_size=9)


def numbered(*words: str) -> dict[str, int]:
    return {word: number for number, word in enumerate(dict.fromkeys(words))}


@given(WORDS, st.sampled_from(["", "s", "es", "ed", "eds", "ing", "ings", "ies", "e", "eing", "eeings", "inges"]))
def test_every_word_is_a_possible_form_of_its_family(stem: str, ending: str) -> None:
    for word in (stem + ending, stem + stem[-1] + ending):
        assert word in possible_forms(family(word))


def test_the_word_that_names_a_family_comes_first() -> None:
    known = numbered("accounts", "counted", "account", "counting", "accounted")
    families, words = Families(known), list(known)
    assert [words[number] for number in families.numbers("account")] == ["account", "accounts", "accounted"]
    assert [words[number] for number in families.numbers("count")] == ["counting", "counted"]
    assert families.numbers("unheard") == ()


@given(st.permutations(["account", "accounts", "accounting", "accounted", "update", "updates", "updated", "updating"]))
def test_the_forms_of_a_word_have_an_order_of_their_own_in_whatever_order_they_came(order: list[str]) -> None:
    families = Families(numbered(*order))
    forms = [[order[number] for number in families.numbers(key)] for key in ("account", "updat")]
    assert forms == [
        ["account", "accounts", "accounting", "accounted"],
        ["updates", "updating", "updated", "update"],
    ]


@given(st.lists(WORDS, max_size=40), st.lists(WORDS, max_size=40))
def test_no_family_with_a_word_is_ever_said_to_lack_one_also_when_the_word_came_later(
    first: list[str], later: list[str]
) -> None:
    known = numbered(*first)
    families = Families(known)
    for word in (*first, *first):
        assert not families.lack(family(word))
    for word in later:
        known.setdefault(word, len(known))
        assert not families.lack(family(word))
        assert known[word] in families.numbers(family(word))


@given(st.lists(WORDS, max_size=40), st.lists(WORDS, max_size=9), st.integers(0, 60))
def test_several_families_are_looked_up_as_each_of_them_is_before_there_are_marks_and_after(
    words: list[str], others: list[str], asked: int
) -> None:
    families = Families(numbered(*words))
    for _ in range(asked):
        families.lack("unheard")
    keys = [family(word) for word in (*words, *others)]
    assert families.several(keys) == [families.numbers(key) for key in keys]


def test_after_some_questions_most_unknown_families_are_told_at_one_look() -> None:
    families = Families(numbered(*(f"word{number}" for number in range(1_000))))
    said = [families.lack(f"other{number}") for number in range(100)]
    assert not said[0], "marking every word costs more than the first question"
    assert sum(said[20:]) > 70
