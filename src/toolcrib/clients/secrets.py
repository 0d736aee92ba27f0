"""Which texts of a server's entry a screen should not show.

Values of variables and headers always; of arguments those that follow an option with a telling name, the token of an
authorisation header, and the password of an address. A reference such as `${TOKEN}` is no secret.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from toolcrib.clients.base import ClientServer

_MIN_CHARS = 4
"""Shorter texts would hide half of the screen."""
_TELLING = re.compile(r"(?:token|secret|passw(?:or)?d|api[-_]?key|(?:^|[-_])key|pat|credentials?|auth)$", re.IGNORECASE)
_AUTHORISATION = re.compile(r"(?:Bearer|Basic|token)\s+(\S+)", re.IGNORECASE)
_USER_INFO = re.compile(r"://([^/@\s]+)@")
_QUERY = re.compile(r"[?&][^=&\s]*(?:key|token|secret|password|auth)[^=&\s]*=([^&#\s]+)", re.IGNORECASE)
_REFERENCE = re.compile(r"\$\{[^}]*\}|\$[A-Za-z_]\w*")
_VALUE_KEYS = ("env", "headers", "http_headers")


def secrets_of(servers: Iterable[ClientServer]) -> frozenset[str]:
    """The secrets of servers, as they stand in the files."""
    found: set[str] = set()
    for server in servers:
        for key in _VALUE_KEYS:
            found.update(_texts(server.raw.get(key)))
        found.update((*server.env.values(), *server.headers.values()))
        found.update(argument_secrets((*server.args, server.url or "")))
        command = server.raw.get("command")
        if isinstance(command, Mapping):
            found.update(_texts(command.get("env")))
    return frozenset(text for text in found if len(text) >= _MIN_CHARS and not _REFERENCE.fullmatch(text))


def argument_secrets(args: Sequence[str]) -> Iterator[str]:
    """Parts of a command line that look like secrets."""
    for before, text in zip(("", *args), args, strict=False):
        option, equals, value = text.partition("=")
        if option.startswith("-") and equals and _TELLING.search(option):
            yield value
        elif before.startswith("-") and "=" not in before and _TELLING.search(before) and not text.startswith("-"):
            yield text
        for pattern in (_AUTHORISATION, _USER_INFO, _QUERY):
            yield from (match[1] for match in pattern.finditer(text))


def hide(text: str, secrets: Iterable[str]) -> str:
    """The text with every secret as `***`."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (item for item in value.values() if isinstance(item, str))  # pyright: ignore[reportUnknownVariableType]
