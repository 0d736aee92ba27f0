"""What the entry of a server holds that nobody but the server may read: keys, tokens, passwords.

A server that cannot start often says what it was given ("invalid key sk-…"), and what it says is logged and shown to
clients as the reason. A secret is known by the name that it has, wherever in the entry that stands; what only sounds
like one (a path, a mode, a count) is left readable, because a reason without it helps nobody.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from urllib.parse import quote, quote_plus, unquote

MASK = "***"
SECRET_MAX_CHARS = 4_096
"""A longer secret is looked for in pieces."""
SECRETS_MAX = 1_000
"""Of an entry that holds more, nothing that its server says is told."""
_LEAST_CHARS = 6
"""What is shorter may be any word of a sentence."""

_SECRET = re.compile(
    r"(?<!MON)KEY(?!WORD|BOARD|SPACE|CLOAK)|TOKEN(?!I[SZ])|SECRET|CREDENTIAL|COOKIE|AUTH(?!OR(?!I[SZ]A))"
    r"|PASSW|PASSPHRASE|(?<!BY)(?<!COM)PASS(?![A-Z])|PWD(?![A-Z])|(?<![A-Z])(?:PAT|DSN|JWT|SIG)(?![A-Z])",
    re.IGNORECASE,
)
_PLACES = frozenset({"PWD", "OLDPWD"})
"""Variables of every shell."""
_HOW = re.compile(
    r"-*(?:NO|DISABLE|SKIP|WITHOUT|ENABLE|ALLOW)[-_].*"
    r"|.*(?:[-_.]|(?-i:(?<=[a-z])(?=[A-Z])))(?:MODE|TYPE|METHOD|KIND|FILE|PATH|DIR|NAME|USER|EMAIL|UR[IL]|HOST|PORT"
    r"|ENDPOINT|SERVER|ISSUER|AUDIENCE|SCOPES?|REALM|PROVIDER|ALGORITHM|AGE|TTL|TIMEOUT|EXPIRY|LIMIT|SIZE|LENGTH|COUNT"
    r"|ENABLED|DISABLED|REQUIRED)",
    re.IGNORECASE,
)
"""Names of what is said about a secret, not of the secret."""
_READABLE = re.compile(
    r"\$\{?[\w:]+\}?|(?:~|\.\.?|[A-Za-z]:)[/\\].*|/(?:[a-z]+|Users|Volumes|Library)/.*"
    r"|required|optional|enabled|disabled|default|latest|bearer|oauth2?|password|secret"
)
"""References, paths, and words that any sentence may hold."""

_SCHEME = re.compile(r"(?:Bearer|Basic|Token|ApiKey)\s+", re.IGNORECASE)
_LINE_END = re.compile(r"[\r\n]+|\\r|\\n")
_NAME = re.compile(r"(-*[A-Za-z_][\w.-]*)[=:]\s*")
_INNER_NAME = re.compile(r"(?<![\w.-])([A-Za-z_][\w.-]*)(?:[\"']?\s*=\s*|[\"']\s*:\s*|:\s+)")
"""`name=`, `name: ` or `"name":` in the middle of a text."""
_VALUE = re.compile(
    r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'"
    rf"|((?:(?:Bearer|Basic|Token)\s+)?[^\s&;,\"'}}\]]{{1,{SECRET_MAX_CHARS}}})",
    re.IGNORECASE,
)
_NAMELESS = re.compile(r"://[^/?#\s:@]*:([^/?#\s]+)@|https?://([^/?#\s:@]+):?@|\bBearer\s+([^\s\"',;]+)", re.IGNORECASE)
"""Secrets without a name: the password of an address, or the user where there is no password, and what is borne."""
_RANDOM = re.compile(r"(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{20,}")
"""A part of an address that nobody would type."""


class Withheld:
    """Masks the secrets of one server in a text."""

    __slots__ = ("_longest", "_secrets", "_unknown")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        found = {form for secret in secrets for form in _forms(secret)}
        self._unknown = len(found) > SECRETS_MAX
        self._secrets = () if self._unknown else tuple(sorted(found, key=lambda form: (-len(form), form)))
        self._longest = len(self._secrets[0]) if self._secrets else 0

    def mask(self, text: str) -> str:
        """The text without the secrets."""
        if self._unknown:
            return MASK
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text

    def cut(self, text: str, chars: int) -> str:
        """The first characters of the text without the secrets, also without one that is cut."""
        room = chars + self._longest
        told = self.mask(text[:room])
        if len(text) > room and self._longest:
            told = told[: -self._longest]
        return told[:chars]


NOTHING = Withheld()


def withhold(argv: Sequence[str] = (), named: Mapping[str, str] | None = None, url: str = "") -> Withheld:
    """The secrets that a server is started or reached with; `named` are its variables or headers."""
    return Withheld(_found(argv, named or {}, url))


def sounds_secret(name: str) -> bool:
    """Whether what is called so is usually a secret."""
    return _SECRET.search(name) is not None and name not in _PLACES


def _found(argv: Sequence[str], named: Mapping[str, str], url: str) -> Iterator[str]:
    """What is a secret by its name or its place."""
    for name, value in named.items():
        if _is_secret(name, value):
            yield value
        yield from _inside(value)
    for flag, following in pairwise([*argv, ""]):
        if flag.startswith("-") and "=" not in flag and not following.startswith("-") and _is_secret(flag, following):
            yield following
        yield from _inside(flag)
    yield from _inside(url)
    path = url.partition("?")[0].split("/")[3:]
    yield from (part for part in path if _RANDOM.fullmatch(part))


def _inside(text: str) -> Iterator[str]:
    """Secrets in a text that is not one as a whole."""
    rest = text
    for _ in range(3):  # as in `--env=HEADER=Authorization: …`
        match = _NAME.match(rest)
        if match is None:
            break
        rest = rest[match.end() :]
        if _is_secret(match[1], rest):
            yield rest
            break
    end = 0
    for name in _INNER_NAME.finditer(text):
        value = _VALUE.match(text, name.end()) if name.start() >= end and sounds_secret(name[1]) else None
        if value is not None and _is_secret(name[1], said := value[1] or value[2] or value[3] or ""):
            yield said
            end = value.end()
    for match in _NAMELESS.finditer(text):
        yield match[1] or match[2] or match[3]


def _is_secret(name: str, value: str) -> bool:
    is_count = "tokens" in name.lower() and value.strip().isdecimal()
    return sounds_secret(name) and not _HOW.fullmatch(name) and not is_count


def _forms(secret: str) -> Iterator[str]:
    """A secret in all the ways in which a server may say it."""
    whole = secret.strip()
    scheme = _SCHEME.match(whole)
    texts = {whole, whole[scheme.end() :] if scheme else whole, unquote(whole)}
    texts.update(line.strip() for line in _LINE_END.split(whole) if not line.startswith("-----"))
    for text in texts:
        if len(text) < _LEAST_CHARS or _READABLE.fullmatch(text):
            continue
        written = {text, quote(text, errors="replace"), quote(text, safe="", errors="replace")}
        written |= {quote_plus(text, errors="replace"), _escaped(text, ascii_only=True), _escaped(text)}
        for form in written:
            pieces = (form[at : at + SECRET_MAX_CHARS] for at in range(0, len(form), SECRET_MAX_CHARS))
            yield from (piece for piece in pieces if len(piece) >= _LEAST_CHARS)


def _escaped(text: str, *, ascii_only: bool = False) -> str:
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]
