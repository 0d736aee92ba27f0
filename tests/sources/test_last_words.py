"""Why a program ended, from what it wrote."""

import pytest

from toolcrib.sources.last_words import WORDS_MAX_CHARS, last_words

NODE = """node:internal/modules/cjs/loader:1210
  throw err;
  ^

Error: Cannot find module '/srv/dist/index.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)
    at node:internal/main/run_main_module:28:49 {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v20.20.2"""

NODE_CODED = """Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /srv/a.mjs
    at packageResolve (node:internal/modules/esm/resolve:873:9) {
  code: 'ERR_MODULE_NOT_FOUND'
}

Node.js v20.20.2"""

PYTHON = """Traceback (most recent call last):
  File "/srv/a.py", line 3, in <module>
    os.environ["API_TOKEN"]
KeyError: 'API_TOKEN'"""

PYDANTIC = """Traceback (most recent call last):
  File "/srv/a.py", line 3, in <module>
pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings
api_token
  Field required [type=missing]"""

NPM = """npm error code EAI_AGAIN
npm error request to https://registry.example/x failed, reason: getaddrinfo EAI_AGAIN
npm error A complete log of this run can be found in: /home/x/.npm/_logs/a.log"""

NPM_404 = """npm error 404
npm error 404  'x@*' is not in this registry.
npm error 404
npm error 404 Note that you can also install from a
npm error 404 tarball, folder, http url, or git folder.
npm error A complete log of this run can be found in: /home/x/.npm/_logs/a.log"""

RESOLVER = """  × No solution found when resolving tool dependencies:
  ╰─▶ Because x was not found in the package registry, it cannot be had."""


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (NODE, "Error: Cannot find module '/srv/dist/index.js'"),
        (NODE_CODED, "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /srv/a.mjs"),
        (PYTHON, "KeyError: 'API_TOKEN'"),
        (
            PYDANTIC,
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings api_token Field required "
            "[type=missing]",
        ),
        (NPM, "npm error request to https://registry.example/x failed, reason: getaddrinfo EAI_AGAIN"),
        (NPM_404, "npm error 404  'x@*' is not in this registry."),
        (RESOLVER, "╰─▶ Because x was not found in the package registry, it cannot be had."),
        ("usage: x [-h]\nx: error: unrecognized arguments: --y", "x: error: unrecognized arguments: --y"),
        ("\\x1b[31mError: no key\\x1b[0m", "Error: no key"),
        ("}\n---\n", ""),
        ("npm ERR! no such package\nnpm ERR! A complete log of this run is in x", "npm ERR! no such package"),
        ("", ""),
    ],
)
def test_the_words_that_say_why_are_found(written: str, words: str):
    assert last_words(written.split("\n")) == words


def test_an_error_that_much_was_said_after_is_an_old_story():
    later = [f"a line of the log, number {number}" for number in range(20)]
    assert last_words(["Error: a hiccup", *later, "out of memory"]) == "out of memory"


def test_a_long_sentence_is_cut():
    assert len(last_words(["x" * 2_000])) == WORDS_MAX_CHARS
