"""Names: safe for every model API, injective, and never one of ours.

An exposed name is `<prefix>__<leaf>`, or the leaf alone where the toolset has no prefix. A prefix never contains `__`
and never ends in `_`, so the first `__` of an exposed name always parts the two: `a_b` + `c` and `a` + `b_c` cannot
meet. A leaf that a model API would refuse is rewritten, with a digest that keeps different leaves apart.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache

from toolcrib.definitions import BRIDGE_NAMES, ToolName
from toolcrib.errors import DefinitionError
from toolcrib.limits import EXPOSED_NAME_MAX_CHARS, NAME_MAX_CHARS

SEPARATOR = "__"

_SAFE = re.compile(r"[A-Za-z0-9_-]+")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_NOT_WORD = re.compile(r"[\W_]+")
_DIGEST_CHARS = 8

_LOOK_ALIKES = str.maketrans(
    {
        # What a reader takes for a Latin letter; NFKC leaves these alone.
        **dict(zip("аеорсхуһіјѕԁӏклтмнвьѵԝԛց", "aeopcxyhijsdlkltmhbbvwqg", strict=True)),
        **dict(zip("αεορτυνικβγηϲϳ", "aeoptuvikbyncj", strict=True)),
        **dict(zip("ıɑɡʟɩłøđħŧ", "iaglilodht", strict=True)),
        "ᴄ": "c", "ᴏ": "o", "ꜱ": "s", "ʀ": "r", "ʜ": "h", "ᴀ": "a", "ᴇ": "e", "ᴛ": "t", "ᴅ": "d", "ɪ": "i", "ʙ": "b",
        "օ": "o", "ո": "n", "ս": "u", "ӏ": "l",
        # One shape, several characters: i, l, 1 and |; o and 0.
        "0": "o", "1": "l", "i": "l", "|": "l", "5": "s", "$": "s", "@": "a", "3": "e",
    }
)  # fmt: skip


_LETTERS = {code: plain for code, plain in _LOOK_ALIKES.items() if code > 0x7F}
"""Look-alikes that are foreign letters: in running text digits stay digits."""
_FOREIGN = frozenset(map(chr, _LETTERS))


def letters_of(text: str) -> str:
    """The text with foreign look-alikes as the Latin letters that they are taken for."""
    for foreign in set(text) & _FOREIGN:
        text = text.replace(foreign, _LETTERS[ord(foreign)])
    return text


def skeleton(name: str) -> str:
    """What a reader sees: one string for all names that look or sound alike, separators left out."""
    decomposed = unicodedata.normalize("NFKD", name).casefold()
    kept = "".join(char for char in decomposed if unicodedata.category(char) not in {"Mn", "Me", "Cf", "Cc"})
    # Twice: a look-alike may stand for a letter that has look-alikes itself (і → i → l).
    return _NOT_WORD.sub("", kept.translate(_LOOK_ALIKES).translate(_LOOK_ALIKES))


_RESERVED = frozenset(skeleton(name) for name in BRIDGE_NAMES)
_KEPT_CHARS = 128
"""Names up to this length are decided once; a longer one is no tool's, and nothing is kept of it."""


def is_reserved(name: str) -> bool:
    """Whether the name is, or could be taken for, a bridge tool's."""
    # Every look-alike of an ASCII letter that is ASCII itself keeps the first letter: most names end here.
    if name.isascii() and name.lstrip("_-. ")[:1] not in {"t", "T"}:
        return False
    return _is_reserved(name) if len(name) <= _KEPT_CHARS else skeleton(name) in _RESERVED


@lru_cache(1_024)
def _is_reserved(name: str) -> bool:
    return skeleton(name) in _RESERVED


def fold(name: str) -> str:
    """The name without case and separators: how a model may have misremembered it (X6)."""
    if name.isascii():
        # Folding does no more than this to ASCII, and most names have nothing else to take out.
        plain = name.lower().replace("_", "").replace("-", "")
        return plain if plain.isalnum() else _NOT_WORD.sub("", plain)
    return _NOT_WORD.sub("", unicodedata.normalize("NFKC", name).casefold())


def safe_prefix(name: str) -> str:
    """A toolset's name as a prefix of exposed names."""
    cleaned = re.sub(r"_{2,}", "_", _UNSAFE.sub("_", name)).strip("_")
    if cleaned == name and len(name) <= EXPOSED_NAME_MAX_CHARS // 2:
        return name
    return f"{cleaned[: EXPOSED_NAME_MAX_CHARS // 2 - _DIGEST_CHARS - 1].rstrip('_')}_{_digest(name)}".lstrip("_")


def exposed_name(prefix: str, leaf: str) -> ToolName:
    """The name under which sessions know the tool. Raises `DefinitionError` for a name that nobody may use."""
    head = f"{prefix}{SEPARATOR}" if prefix else ""
    plain = f"{head}{leaf}"
    safe = len(plain) <= EXPOSED_NAME_MAX_CHARS and _SAFE.fullmatch(plain) is not None
    if not safe or not leaf:
        _require_name(leaf)
    if is_reserved(leaf) or (prefix and is_reserved(plain)):
        raise DefinitionError(f"the name `{leaf}` is reserved: it is, or looks like, one of {', '.join(BRIDGE_NAMES)}")
    if safe:
        return ToolName(plain)
    cleaned = _UNSAFE.sub("_", leaf).strip("_") or "tool"
    room = EXPOSED_NAME_MAX_CHARS - len(head) - _DIGEST_CHARS - 1
    return ToolName(f"{head}{cleaned[:room]}_{_digest(plain)}")


def _require_name(leaf: str) -> None:
    if not leaf or len(leaf) > NAME_MAX_CHARS:
        raise DefinitionError(f"a name has 1 to {NAME_MAX_CHARS} characters, not {len(leaf)}")
    if not (leaf.isascii() and leaf.isprintable()) and any(
        unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} for char in leaf
    ):
        raise DefinitionError(f"the name {leaf!a} holds invisible or control characters")


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=_DIGEST_CHARS // 2).hexdigest()


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most likely meant, if any comes close: for the texts of errors."""
    return next(iter(get_close_matches(name, sorted(known), n=1, cutoff=0.6)), None)
