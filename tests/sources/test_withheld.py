"""What nobody but the server may read."""

import json
from urllib.parse import quote

import pytest

from toolcrib.sources.withheld import MASK, SECRET_MAX_CHARS, SECRETS_MAX, Withheld, sounds_secret, withhold

SECRET = "sk-12345678"


@pytest.mark.parametrize(
    "name",
    [
        "API_KEY", "x-auth", "--passwd", "clientSecret", "Authorization", "Cookie", "DB_PASS", "PGPASSWORD", "MYSQL_PWD",
        "GITHUB_PAT", "SENTRY_DSN", "apiKeys", "OAUTH_TOKENS",
    ],
)  # fmt: skip
def test_a_name_that_sounds_secret(name: str):
    assert sounds_secret(name)


@pytest.mark.parametrize(
    "name", ["GIT_AUTHOR_NAME", "PATH", "PWD", "OLDPWD", "KEYWORDS", "TOKENIZERS_PARALLELISM", "COMPASS", "AUTHORITY"]
)
def test_a_name_that_only_looks_like_one_of_a_secret(name: str):
    assert not sounds_secret(name)


@pytest.mark.requirement("X17")
@pytest.mark.parametrize(
    "argv",
    [
        ("--api-key", SECRET),
        (f"--token={SECRET}",),
        (f"postgresql://somebody:{SECRET}@host/db",),
        (f"https://{SECRET}@git.example.org/repository",),
        (f"https://example.org/mcp?api_key={SECRET}&page=second",),
        ("--header", f"Authorization: Bearer {SECRET}"),
        ("--header", f"X-Api-Key:{SECRET}"),
        ("-e", f"TOKEN={SECRET}"),
        (f"--env=API_KEY={SECRET}",),
        (f"host=example password={SECRET} dbname=things",),
        (f"Server=example;Pwd={SECRET};",),
        ("--config", f'{{"apiKey": "{SECRET}", "region": "somewhere"}}'),
    ],
)
def test_a_secret_is_found_wherever_in_an_argument_it_stands(argv: tuple[str, ...]):
    given = withhold(argv)
    assert given.mask(f"tried {SECRET} for somebody at example.org/mcp, second of things, somewhere") == (
        f"tried {MASK} for somebody at example.org/mcp, second of things, somewhere"
    )


@pytest.mark.requirement("X17")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_TOKEN", SECRET),
        ("GITHUB_TOKEN", f"{SECRET}\r\n"),
        ("Authorization", f"Bearer {SECRET}"),
        ("DATABASE_URL", f"postgresql://somebody:{SECRET}@host/db"),
        ("OPENAPI_MCP_HEADERS", f'{{"Authorization": "Bearer {SECRET}", "Notion-Version": "2022-06-28"}}'),
        ("X-Upstream", f"Bearer {SECRET}"),
    ],
)
def test_a_secret_is_found_in_variables_and_headers(name: str, value: str):
    assert withhold(named={name: value}).mask(f"({SECRET}) 2022-06-28") == f"({MASK}) 2022-06-28"


def test_what_nobody_would_type_in_an_address_is_a_secret():
    given = withhold(url="https://example.org/connections/ZDQ3YzkwOTMtNGU1ZC00/mcp?token=abcdefgh")
    assert given.mask("no ZDQ3YzkwOTMtNGU1ZC00 in /connections, abcdefgh") == f"no {MASK} in /connections, {MASK}"


def test_every_line_of_a_secret_is_one():
    lines = ["MIIEvQIBADANBg", "kqhkiG9w0BAQEF"]
    for end in ("\n", "\r\n", "\\n"):
        key = end.join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----", ""])
        given = withhold(named={"PRIVATE_KEY": key})
        assert given.mask(f"bad line {lines[1]}, not {lines[0]}") == f"bad line {MASK}, not {MASK}"
        assert given.mask("no -----BEGIN PRIVATE KEY-----") == "no -----BEGIN PRIVATE KEY-----"


def test_a_secret_is_known_however_it_is_written():
    secret = 'pä"ss/wörd+1'
    given = withhold(named={"PASSWORD": secret})
    written = [
        secret,
        json.dumps(secret),
        json.dumps(secret, ensure_ascii=False),
        quote(secret),
        quote(secret, safe=""),
    ]
    for text in written:
        assert given.mask(text).strip('"') == MASK
    # In an address it is written so already.
    assert withhold(["mysql://somebody:p%40ssword@host"]).mask("p@ssword, p%40ssword") == f"{MASK}, {MASK}"


@pytest.mark.parametrize(
    ("argv", "named", "text"),
    [
        (("--no-auth", "--verbose"), {}, "--verbose is unknown"),
        (("--no-auth", "server.js"), {}, "server.js is missing"),
        (("--auth", "required"), {}, "a login is required"),
        (("--max-tokens", "100000"), {}, "100000 is too much"),
        (("mcp/redis-key:v1.2.3",), {}, "v1.2.3 is too old"),
        (("postgresql://postgres@host/db",), {}, "postgres may not log in"),
        ((), {"GIT_AUTHOR_NAME": "Somebody"}, "Somebody is unknown"),
        ((), {"MAX_TOKENS": "100000"}, "100000 is too much"),
        ((), {"AUTH_MODE": "negotiate"}, "negotiate is unknown"),
        ((), {"authMode": "negotiate"}, "negotiate is unknown"),
        ((), {"TOKEN_URL": "https://example.org/token"}, "https://example.org/token does not answer"),
        ((), {"GOOGLE_APPLICATION_CREDENTIALS": "/home/somebody/key.json"}, "/home/somebody/key.json is missing"),
        ((), {"SSH_KEY": "~/.ssh/id_ed25519"}, "~/.ssh/id_ed25519 is missing"),
        ((), {"API_KEY": "${MY_API_KEY}"}, "${MY_API_KEY} is no key"),
        (("--header", "Authorization: Bearer ${MY_API_KEY}"), {}, "${MY_API_KEY} is no key"),
        ((), {"KEY": "short"}, "short of keys"),
        ((), {"HOME": "/home/somebody", "Accept": "application/json"}, "/home/somebody, application/json"),
    ],
)
def test_what_is_no_secret_stays_readable(argv: tuple[str, ...], named: dict[str, str], text: str):
    assert withhold(argv, named).mask(text) == text


def test_of_two_secrets_one_of_which_holds_the_other_nothing_is_left():
    given = withhold(named={"A_TOKEN": "abcdef", "B_TOKEN": "abcdef-longer"})
    assert given.mask("tried abcdef-longer, then abcdef") == f"tried {MASK}, then {MASK}"


def test_no_part_of_a_secret_is_left_where_a_text_is_cut():
    given = Withheld([SECRET])
    for before in range(40):
        text = "." * before + SECRET * 30 + "the end"
        assert set(given.cut(text, 20)) <= {".", "*"}
    assert given.cut("x" * 100, 20) == "x" * 20
    assert given.cut(f"no {SECRET}", 20) == f"no {MASK}"
    assert Withheld().cut("x" * 100, 20) == "x" * 20


def test_a_very_long_secret_is_masked_to_its_end():
    secret = "".join(f"{number:06}" for number in range(SECRET_MAX_CHARS))
    assert set(withhold(named={"KEY": secret}).mask(secret)) == {"*"}


def test_of_more_secrets_than_are_looked_for_nothing_is_told():
    given = withhold(named={f"KEY_{number}": f"value-{number}" for number in range(SECRETS_MAX + 1)})
    assert given.mask("tried value-7") == MASK
    assert given.cut("tried value-7" * 100, 20) == MASK


@pytest.mark.requirement("J3")
def test_what_is_withheld_does_not_show_itself():
    assert SECRET not in repr(Withheld([SECRET]))
