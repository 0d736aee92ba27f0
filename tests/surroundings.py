"""The variables of whoever runs the tests, and what of them may reach a test.

Colours, widths, proxies, keys, directories and the wordiness of Python that a shell or a build machine has set would decide what a command
prints, where a request goes and which files are read: no test hangs on them. A test that needs one sets it.
"""

import os
from collections.abc import Mapping, MutableMapping

OUTSIDE: Mapping[str, str] = dict(os.environ)
"""All of them, for programs that have to reach a registry."""

_PREFIXES = ("XDG_", "TOOLCRIB_", "OPENAI_", "ANTHROPIC_")
_NAMES = frozenset({
    "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE",
    "COLUMNS", "LINES", "TERMINAL_WIDTH", "GITHUB_ACTIONS",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "PYTHONASYNCIODEBUG", "PYTHONDEVMODE", "PYTHONWARNINGS", "PYTHONTRACEMALLOC", "PYTHONOPTIMIZE", "PYTHONHASHSEED",
    "CLAUDE_CONFIG_DIR", "CODEX_HOME", "HERMES_HOME", "BROWSER", "TZ",
})  # fmt: skip

_KERNEL = "TOOLCRIB_KERNEL"


def leave_outside(environ: MutableMapping[str, str]) -> None:
    """Takes away what no test may hang on."""
    for name in list(environ):
        if name == _KERNEL:  # with and without it the suite must pass alike
            continue
        if name.upper() in _NAMES or name.startswith(_PREFIXES):
            del environ[name]
