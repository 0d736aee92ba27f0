"""More than 226 real tools in more than 12 toolsets: functions of Python's own standard library, as they are.

Each toolset takes what is pure and harmless of one module, says what its parameters are where the module has no
hints, and bounds what the functions may be given. Nothing here is a stub: every tool runs.
"""

import base64
import bisect
import calendar
import colorsys
import difflib
import fnmatch
import hashlib
import heapq
import html
import ipaddress
import math
import mimetypes
import operator
import posixpath
import random
import shlex
import statistics
import string
import textwrap
import unicodedata
import urllib.parse
import uuid
import zlib
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from toolcrib import Bounds, Functions, Traits

HARMLESS = Traits(read_only=True, destructive=False, idempotent=True, parallel=True)
NUMBERS = list[float]


class Dates:
    """Days and times, as the `datetime` module counts them."""

    def today(self) -> str:
        """Today's date in UTC."""
        return datetime.now(UTC).date().isoformat()

    def add_days(self, day: date, days: int) -> date:
        """The date so many days after (or before) another."""
        return day + timedelta(days=days)

    def days_between(self, start: date, end: date) -> int:
        """How many days lie between two dates."""
        return (end - start).days

    def weekday_name(self, day: date) -> str:
        """The name of the weekday of a date."""
        return calendar.day_name[day.weekday()]

    def iso_week(self, day: date) -> int:
        """The ISO week number of a date."""
        return day.isocalendar().week

    def parse_timestamp(self, text: str) -> str:
        """Reads an ISO 8601 timestamp and writes it in UTC."""
        return datetime.fromisoformat(text).astimezone(UTC).isoformat()

    def from_unix_time(self, seconds: float) -> str:
        """The UTC date and time of a Unix timestamp."""
        return datetime.fromtimestamp(seconds, UTC).isoformat()

    def age_in_years(self, birthday: date, on: date) -> int:
        """How old somebody is on a given day."""
        return on.year - birthday.year - ((on.month, on.day) < (birthday.month, birthday.day))


class TimeZones:
    """Time zones of the IANA database."""

    def list_zones(self, containing: str = "") -> list[str]:
        """Names of time zones, such as Europe/Rome."""
        return sorted(name for name in available_timezones() if containing.lower() in name.lower())[:50]

    def convert(self, moment: datetime, zone: str) -> str:
        """A moment in the clock of another time zone."""
        return moment.astimezone(ZoneInfo(zone)).isoformat()

    def utc_offset_hours(self, moment: datetime, zone: str) -> float:
        """How many hours a time zone is ahead of UTC at a moment."""
        offset = moment.astimezone(ZoneInfo(zone)).utcoffset()
        return offset.total_seconds() / 3600 if offset else 0.0


class Digests:
    """Checksums and hashes of texts."""

    def _digest(self, algorithm: str, text: str) -> str:
        return hashlib.new(algorithm, text.encode()).hexdigest()

    def sha256(self, text: str) -> str:
        """SHA-256 hash of a text, in hexadecimal."""
        return self._digest("sha256", text)

    def sha512(self, text: str) -> str:
        """SHA-512 hash of a text, in hexadecimal."""
        return self._digest("sha512", text)

    def sha3_256(self, text: str) -> str:
        """SHA3-256 hash of a text, in hexadecimal."""
        return self._digest("sha3_256", text)

    def blake2b(self, text: str) -> str:
        """BLAKE2b hash of a text, in hexadecimal."""
        return self._digest("blake2b", text)

    def algorithms(self) -> list[str]:
        """Hash algorithms that are always there."""
        return sorted(hashlib.algorithms_guaranteed)


class Rationals:
    """Exact fractions."""

    def add(self, a: str, b: str) -> str:
        """Adds two fractions such as 1/3 and 2/5, exactly."""
        return str(Fraction(a) + Fraction(b))

    def multiply(self, a: str, b: str) -> str:
        """Multiplies two fractions, exactly."""
        return str(Fraction(a) * Fraction(b))

    def approximate(self, number: float, max_denominator: int = 1000) -> str:
        """The closest fraction to a decimal number."""
        return str(Fraction(number).limit_denominator(max_denominator))


class Addresses:
    """IP addresses and networks."""

    def is_private(self, address: str) -> bool:
        """Whether an IP address is for private networks."""
        return ipaddress.ip_address(address).is_private

    def network_size(self, network: str) -> int:
        """How many addresses a network such as 10.0.0.0/8 has."""
        return ipaddress.ip_network(network).num_addresses

    def contains(self, network: str, address: str) -> bool:
        """Whether an address lies in a network."""
        return ipaddress.ip_address(address) in ipaddress.ip_network(network)

    def reverse_pointer(self, address: str) -> str:
        """The name under which an address is looked up in reverse DNS."""
        return ipaddress.ip_address(address).reverse_pointer


class Texts:
    """What Python's strings can do."""

    def upper(self, text: str) -> str:
        """A text in capital letters."""
        return text.upper()

    def lower(self, text: str) -> str:
        """A text in small letters."""
        return text.lower()

    def title(self, text: str) -> str:
        """A text with every word capitalised."""
        return text.title()

    def reverse(self, text: str) -> str:
        """A text read backwards."""
        return text[::-1]

    def replace(self, text: str, old: str, new: str) -> str:
        """A text with every occurrence of a part replaced."""
        return text.replace(old, new)

    def count(self, text: str, part: str) -> int:
        """How often a part occurs in a text."""
        return text.count(part)

    def word_count(self, text: str) -> int:
        """How many words a text has."""
        return len(text.split())

    def split_lines(self, text: str) -> list[str]:
        """The lines of a text."""
        return text.splitlines()

    def pad(self, text: str, width: int, fill: str = " ") -> str:
        """A text padded on the left to a width."""
        return text.rjust(min(width, 1_000), fill)

    def is_palindrome(self, text: str) -> bool:
        """Whether a text reads the same backwards."""
        letters = [char.lower() for char in text if char.isalnum()]
        return letters == letters[::-1]

    def initials(self, text: str) -> str:
        """The first letters of the words of a name."""
        return "".join(word[0].upper() for word in text.split())

    def remove_accents(self, text: str) -> str:
        """A text without accents and other marks."""
        return "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))


class Lists:
    """What can be done with a list of numbers or words."""

    def sort(self, items: list[str], descending: bool = False) -> list[str]:
        """A list in alphabetical order."""
        return sorted(items, reverse=descending)

    def unique(self, items: list[str]) -> list[str]:
        """A list without repetitions, in its order."""
        return list(dict.fromkeys(items))

    def chunk(self, items: list[str], size: int) -> list[list[str]]:
        """A list cut into pieces of a size."""
        return [items[start : start + size] for start in range(0, len(items), max(1, size))]

    def tally(self, items: list[str]) -> dict[str, int]:
        """How often each item of a list occurs."""
        return {item: items.count(item) for item in dict.fromkeys(items)}

    def intersection(self, first: list[str], second: list[str]) -> list[str]:
        """What two lists have in common."""
        return [item for item in first if item in second]

    def difference(self, first: list[str], second: list[str]) -> list[str]:
        """What is in the first list but not in the second."""
        return [item for item in first if item not in second]

    def running_total(self, numbers: list[float]) -> list[float]:
        """Cumulative sums of a list of numbers."""
        return [math.fsum(numbers[: count + 1]) for count in range(len(numbers))]

    def shuffle(self, items: list[str], seed: int = 0) -> list[str]:
        """A list in a random order that the seed decides."""
        return random.Random(seed).sample(items, len(items))  # noqa: S311 - no secret depends on it


def stdlib_toolsets() -> list[Functions]:
    """All toolsets."""
    small = Bounds(number=1e6, text=5_000, items=1_000)
    text = Bounds(text=5_000)

    def of(owner: object, *, bounds: Bounds = small, **options: Any) -> Functions:
        return Functions.of(owner, traits=HARMLESS, bounds=bounds, **options)

    paths = (
        "basename",
        "commonpath",
        "commonprefix",
        "dirname",
        "isabs",
        "join",
        "normcase",
        "normpath",
        "relpath",
        "split*",
    )
    return [
        of(math, types={"x": float, "y": float, "n": int, "k": int, "a": float, "b": float, "p": NUMBERS, "q": NUMBERS,
                        "integers": int, "seq": NUMBERS, "iterable": NUMBERS, "i": int}),
        of(statistics, types={"data": NUMBERS, "x": NUMBERS, "y": NUMBERS}, exclude=("NormalDist", "*kde*")),
        of(operator, types={"a": Any, "b": Any}, exclude=("*setitem*", "*delitem*", "attrgetter", "call", "i*", "mul", "pow", "lshift")),
        of(textwrap, types={"text": str, "prefix": str, "width": int}, exclude=("TextWrapper",)),
        of(string, types={"s": str, "sep": str}, include=("capwords",)),
        of(difflib, types={"word": str, "possibilities": list[str], "a": list[str], "b": list[str], "n": int, "cutoff": float},
           include=("get_close_matches", "ndiff", "unified_diff", "context_diff")),
        of(base64, types={"s": bytes, "b": bytes}, include=("b64*", "urlsafe_*", "b32*", "b16*", "a85*", "b85*")),
        of(zlib, types={"data": bytes, "value": int}, include=("crc32", "adler32"), bounds=Bounds(text=5_000)),
        of(urllib.parse, name="urls", types={"url": str, "base": str, "string": str, "qs": str, "query": dict[str, str], "components": list[str]},
           include=("quote", "quote_plus", "unquote", "unquote_plus", "urlencode", "urljoin", "urlparse", "urlsplit", "urldefrag", "parse_qs", "parse_qsl", "urlunparse")),
        of(html, types={"s": str}, include=("escape", "unescape")),
        of(colorsys, types={"r": float, "g": float, "b": float, "h": float, "s": float, "l": float, "v": float, "y": float, "i": float, "q": float}),
        of(unicodedata, types={"chr": str, "character": str, "name": str, "form": str, "unistr": str}, exclude=("ucd_*",)),
        of(calendar, types={"year": int, "month": int, "day": int, "theyear": int, "themonth": int, "y1": int, "y2": int},
           include=("isleap", "leapdays", "weekday", "monthrange", "month", "monthcalendar", "calendar")),
        of(posixpath, name="paths", types={"p": str, "a": str, "path": str, "paths": list[str], "m": list[str], "start": str, "s": str}, include=paths),
        of(bisect, types={"a": NUMBERS, "x": float}, include=("bisect_left", "bisect_right")),
        of(heapq, types={"n": int, "iterable": NUMBERS}, include=("nlargest", "nsmallest")),
        of(fnmatch, types={"name": str, "pat": str, "names": list[str]}, include=("fnmatch", "fnmatchcase", "filter"), bounds=Bounds(text=200)),
        of(shlex, types={"s": str, "split_command": list[str]}, include=("quote", "join", "split"), bounds=text),
        of(mimetypes, types={"url": str, "type": str}, include=("guess_type", "guess_extension", "guess_all_extensions")),
        of(uuid, types={}, include=("uuid4",)),
        of(random, types={"a": float, "b": float, "mu": float, "sigma": float, "k": int, "seq": list[str], "population": list[str]},
           include=("randint", "random", "uniform", "choice", "gauss", "triangular", "betavariate", "expovariate")),
        of(Dates(), name="dates"),
        of(TimeZones(), name="timezones"),
        of(Digests(), name="digests"),
        of(Rationals(), name="fractions"),
        of(Addresses(), name="addresses"),
        of(Texts(), name="texts"),
        of(Lists(), name="lists"),
    ]  # fmt: skip
