"""What the entry of a server holds that nobody but the server may read: keys, tokens, passwords.

A server that cannot start often says what it was given ("invalid key sk-…"), and what it says is logged and shown to
clients as the reason.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
_LEAST_CHARS = 6
"""What is shorter may be any word of a sentence."""
MASK = "***"


def sounds_secret(name: str) -> bool:
    """Whether what is called so is usually a secret."""
    return _SECRET.search(name) is not None


def secrets_of(argv: Sequence[str], env: Mapping[str, str]) -> tuple[str, ...]:
    """The secrets that a server is started with, the longest first."""
    found = {value for name, value in env.items() if sounds_secret(name)}
    for flag, following in pairwise([*argv, ""]):
        name, is_whole, value = flag.partition("=")
        if name.startswith("-") and sounds_secret(name):
            found.add(value if is_whole else following)
    long = [value for value in found if len(value) >= _LEAST_CHARS]
    return tuple(sorted(long, key=lambda value: (-len(value), value)))


def masked(text: str, secrets: Iterable[str]) -> str:
    """The text without the secrets."""
    for secret in secrets:
        text = text.replace(secret, MASK)
    return text
