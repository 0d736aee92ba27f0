"""Child processes that never outlive us: their own group, a mark on every descendant, and a guard for the worst case.

A server gets the variables that any program needs, and those that its entry declares; nothing else of ours (H3). It is
ended politely, then firmly, then with everything that it started: its group, and on Linux every process that carries
its mark, whatever session it moved to. If we are killed ourselves, the guard (a few kilobytes of shell, waiting for
our pipe to close) does the same.
"""

import asyncio
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

MARK = "TOOLCRIB_PROCESS"
"""The variable that every descendant of a server inherits."""

_ALLOWED = (
    "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "XDG_RUNTIME_DIR",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "DISPLAY", "WAYLAND_DISPLAY", "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE", "SSL_CERT_DIR",
    # Windows
    "APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROGRAMDATA", "PROGRAMFILES",
    "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
)  # fmt: skip

_GUARD = """
trap '' INT TERM HUP
groups=' '
while read -r what group; do
  case $what in
    +) groups="$groups$group " ;;
    -) groups="${groups%% $group *} ${groups#* $group }" ;;
    x) exit 0 ;;
  esac
done
marked() { grep -lsa "$1=$2" /proc/[0-9]*/environ 2>/dev/null | tr -dc '0-9\\n'; }
for group in $groups; do kill -TERM -- "-$group" 2>/dev/null; done
sleep 1
for group in $groups; do kill -KILL -- "-$group" 2>/dev/null; done
for pid in $(marked "$1" "$2"); do kill -KILL "$pid" 2>/dev/null; done
"""


def child_environment(declared: Mapping[str, str], mark: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a server: an allow-list of ours, what its entry declares, and its mark."""
    allowed = {name: environ[name] for name in _ALLOWED if name in environ}
    allowed.update((name, value) for name, value in environ.items() if name.startswith("LC_"))
    return {**allowed, **declared, MARK: mark}


def leaves_pipes_open(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether a child of this loop gets second copies of its pipes, so that closing one of them goes unnoticed.

    uvloop does so on Linux, and closes nothing else that can be inherited.
    """
    return type(loop).__module__.partition(".")[0] == "uvloop" and sys.platform == "linux"


def keep_three_pipes() -> None:
    """Lets a child, before it becomes its program, keep its input, its output and its standard error only."""
    # Marked and not closed: the pipes are not yet in their places.
    names: list[str] = []
    with suppress(OSError):
        names = os.listdir("/proc/self/fd")  # noqa: PTH208 - between fork and exec, as little as possible
    for name in names:
        if int(name) > 2:
            with suppress(OSError):  # the one that the list was read from is gone
                os.set_inheritable(int(name), False)


class Guard:
    """Ends the servers if this process dies without doing so."""

    def __init__(self) -> None:
        self.mark = secrets.token_hex(8)
        self._groups: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None

    def watch(self, group: int) -> None:
        """Takes a process group into its care."""
        self._groups.add(group)
        self._tell(f"+ {group}\n")

    def forget(self, group: int) -> None:
        """Lets go of a group that has ended; without any, the guard ends too."""
        if group not in self._groups:
            return
        self._groups.discard(group)
        self._tell(f"- {group}\n")
        if not self._groups:
            self.dismiss()

    def dismiss(self) -> None:
        """Ends the guard: nothing is left to watch."""
        if self._process is not None:
            self._tell("x\n")
            if self._process.stdin:
                with suppress(OSError):
                    self._process.stdin.close()
            # On a machine that is too busy for it, it ends later: its input is closed.
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=5)
            self._process = None

    def _tell(self, line: str) -> None:
        if sys.platform == "win32":
            return
        if self._process is None:
            # The guard has its own session: what ends ours must not end it.
            self._process = subprocess.Popen(  # noqa: S603 - our own script, our own mark
                ["/bin/sh", "-c", _GUARD, "toolcrib-guard", MARK, self.mark],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={"PATH": os.environ.get("PATH", "/usr/bin:/bin")},
                close_fds=True,
            )
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.write(line.encode())
                self._process.stdin.flush()


def signal_group(group: int, number: signal.Signals) -> None:
    """Sends a signal to a whole process group, if it still exists."""
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            os.kill(group, signal.SIGTERM)
        else:
            os.killpg(group, number)


def kill_marked(mark: str) -> None:
    """Kills every process that carries the mark, wherever it went (Linux; elsewhere the group has to do)."""
    for pid in marked_processes(mark):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def marked_processes(mark: str) -> Iterable[int]:
    """Processes that carry the mark."""
    wanted = f"{MARK}={mark}".encode()
    own = os.getpid()
    for entry in Path("/proc").glob("[0-9]*") if Path("/proc/self/environ").exists() else ():
        with suppress(OSError, ValueError):
            if wanted in (entry / "environ").read_bytes().split(b"\0") and int(entry.name) != own:
                yield int(entry.name)
