"""Which texts of a server's entry a screen should not show.

Of arguments what follows an option, a variable or a header with a telling name, the token of an authorisation header,
and the password of an address. A reference such as `${TOKEN}` is no secret.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

_TELLING = re.compile(r"(?:token|secret|passw(?:or)?d|api[-_]?key|(?:^|[-_])key|pat|credentials?|auth)$", re.IGNORECASE)
_AUTHORISATION = re.compile(r"(?:Bearer|Basic|token)\s+(\S+)", re.IGNORECASE)
_USER_INFO = re.compile(r"://([^/@\s]+)@")
_QUERY = re.compile(r"[?&][^=&\s]*(?:key|token|secret|password|auth)[^=&\s]*=([^&#\s]+)", re.IGNORECASE)
_REFERENCE = re.compile(r"\$\{[^}]*\}|\$[A-Za-z_]\w*")
_HEADER = re.compile(r"([\w-]+):\s*(.*)", re.DOTALL)


def argument_secrets(args: Sequence[str]) -> Iterator[str]:
    """Parts of a command line that look like secrets."""
    for before, text in zip(("", *args), args, strict=False):
        option, equals, value = text.partition("=")
        header = _HEADER.fullmatch(text)
        if equals and _TELLING.search(option) and "://" not in option:
            if not _REFERENCE.fullmatch(value):
                yield value
        elif header and _TELLING.search(header[1]):
            yield header[2]
        elif before.startswith("-") and "=" not in before and _TELLING.search(before) and not text.startswith("-"):
            yield text
        for pattern in (_AUTHORISATION, _USER_INFO, _QUERY):
            yield from (match[1] for match in pattern.finditer(text))


def hide(text: str, secrets: Iterable[str]) -> str:
    """The text with every secret as `***`."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text
