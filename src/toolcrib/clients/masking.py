"""Shows lines of a client's file without what may be a secret.

A secret stands in a file as the format writes it: escaped, folded over lines, quoted twice. So nothing is searched for
and hidden; instead a value is shown only if it is known to be none, such as a command, and everything else is `***`.
Keys and the marks of the format stay.
"""

import json
import re
from collections.abc import Iterable, Mapping

from toolcrib.clients.base import ClientServer
from toolcrib.clients.secrets import argument_secrets, hide
from toolcrib.clients.servers import variables_of

_HIDDEN = "***"
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\']|\'\')*\'')
_LONG = re.compile(r"""\s*(?:[\w.-]+|"[^"]*")\s*=\s*(?=\"{3}|'{3})""")
_SECTION = re.compile(r"\s*\[\[?mcp_servers[^\[\]]*\]\]?\s*")
_PLAIN = re.compile(r"[^\s,{}\[\]](?:[^,{}\[\]]*[^\s,{}\[\]])?")
_PAIR = re.compile(r"(-\s+)?(?:([\w.$@/-]+)\s*([:=])(?:\s+|$))?(.*)", re.DOTALL)
_HARMLESS = re.compile(r"true|false|null|yes|no|on|off|stdio|https?|sse|streamable-http|[|>&*-]+|", re.I)
_NUMBER = re.compile(r"[-+]?[\d._]{1,7}")
"""Harmless without quotes only: with them it is a text, and may be a PIN."""
_OPENING = ("[", "{", '"', "'")
_KEY = re.compile(r"\s*[:=]")


def open_texts(servers: Iterable[ClientServer]) -> Mapping[str, str]:
    """What may be shown of servers, and how: commands, arguments and addresses, without what looks like a secret.

    References to variables, too.
    """
    servers = tuple(servers)
    references = (text for name in variables_of(servers) for text in (f"${{{name}}}", f"${{env:{name}}}"))
    shown = {text: text for text in references}
    for server in servers:
        texts = [text for text in (server.command, *server.args, server.url, server.cwd) if text]
        hidden = frozenset(argument_secrets((*server.args, server.url or "")))
        shown |= {text: hide(text, hidden) for text in texts}
    return shown


def masked(line: str, shown: Mapping[str, str]) -> str:
    """A line of JSON, TOML or YAML, with every value that is not `shown` as `***`."""
    if '"""' in line or "'''" in line:
        begun = _LONG.match(line)
        return f"{begun[0]}{_HIDDEN}" if begun else _HIDDEN
    if _SECTION.fullmatch(line):
        return line
    made: list[str] = []
    at = 0
    for quoted in _QUOTED.finditer(line):
        made.append(_plainly(line[at : quoted.start()], shown, then=quoted[0]))
        made.append(quoted[0] if _KEY.match(line, quoted.end()) else _value(quoted[0], shown))
        at = quoted.end()
    made.append(_plainly(line[at:], shown))
    return "".join(made)


def _value(quoted: str, shown: Mapping[str, str]) -> str:
    text = quoted[1:-1].replace("''", "'") if quoted[0] == "'" else _decoded(quoted)
    known = shown.get(text)
    if known is not None:
        return quoted if known == text else f"{quoted[0]}{known}{quoted[0]}"
    return quoted if not text or _HARMLESS.fullmatch(text) else f"{quoted[0]}{_HIDDEN}{quoted[0]}"


def _decoded(quoted: str) -> str:
    try:
        return str(json.loads(quoted))
    except ValueError:
        return quoted[1:-1]


def _plainly(text: str, shown: Mapping[str, str], *, then: str = "") -> str:
    """What stands between quotes: marks and keys as they are, values only if they may be shown.

    What ends in `:` or `=` is a key only if something follows that can be its value, or, with `:`, the end of the line:
    the padding of base64 looks the same.
    """

    def said(found: re.Match[str]) -> str:
        pair = _PAIR.fullmatch(found[0])
        if pair is None:
            return _HIDDEN
        dash, key, sign, value = pair.groups(default="")
        rest = f"{text[found.end() :]}{then}".lstrip()
        opens = rest.startswith(_OPENING)
        if key and not value:
            is_key = opens or (sign == ":" and not rest)
            return found[0] if is_key else dash + shown.get(found[0].removeprefix(dash), _HIDDEN)
        if value in {":", "="} or _HARMLESS.fullmatch(value) or _NUMBER.fullmatch(value):
            return found[0]
        if not key and opens and value.endswith((":", "=")):
            return found[0]
        before = found[0][: len(found[0]) - len(value)]
        return before + shown.get(value, _HIDDEN)

    return _PLAIN.sub(said, text)
