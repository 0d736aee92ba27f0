"""What nobody but the server may read."""

import pytest

from toolcrib.sources.withheld import masked, secrets_of, sounds_secret


def test_secrets_are_known_by_the_names_that_they_have_in_the_entry():
    argv = ["npx", "server", "--api-key", "abcdef-1", "--token=abcdef-2", "--port", "8080123", "--root=/srv/data"]
    env = {"GITHUB_TOKEN": "abcdef-33", "DB_PASSWORD": "hunter22", "HOME": "/home/somebody", "KEY": "short"}
    assert secrets_of(argv, env) == ("abcdef-33", "abcdef-1", "abcdef-2", "hunter22")


@pytest.mark.parametrize("name", ["API_KEY", "x-auth", "--passwd", "clientSecret"])
def test_a_name_that_sounds_secret(name: str):
    assert sounds_secret(name)


def test_of_two_secrets_one_of_which_holds_the_other_nothing_is_left():
    secrets = secrets_of([], {"A_TOKEN": "abcdef", "B_TOKEN": "abcdef-longer"})
    assert masked("tried abcdef-longer, then abcdef", secrets) == "tried ***, then ***"
