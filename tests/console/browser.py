"""A real browser for tests: Chromium without a window, spoken to in its own protocol over two pipes.

It gets a profile of its own that is thrown away, and is told to ask nobody outside for anything.
"""

import asyncio
import base64
import fcntl
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import orjson
from tests.node_programs import give_up

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-extensions",
    "--disable-dev-shm-usage", "--no-default-browser-check", "--remote-debugging-pipe", "--hide-scrollbars",
)  # fmt: skip
READY_S = 40.0
"""Seconds until a page must show what is waited for: a busy machine is no reason to fail."""


class Tab:
    """One page."""

    def __init__(self, browser: "Browser", session: str) -> None:
        self._browser = browser
        self._session = session
        self.said: list[dict[str, Any]] = []
        """What the page wrote to its console, what it refused by its policy, and what went wrong."""
        self.asked: list[str] = []
        """Every address that it asked for."""

    async def do(self, method: str, **params: Any) -> Any:
        """One command of the protocol."""
        return await self._browser.do(method, self._session, **params)

    async def open(self, url: str) -> None:
        """Goes somewhere."""
        await self.do("Page.navigate", url=url)

    async def another(self) -> "Tab":
        """Another page of the same browser."""
        return await self._browser.tab()

    async def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = await self.do("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def until(self, script: str) -> None:
        """Waits until an expression is true of the page."""
        async with asyncio.timeout(READY_S):
            while not await self.run(f"Boolean({script})"):  # noqa: ASYNC110 - the event is in another process
                await asyncio.sleep(0.05)

    async def text(self) -> str:
        """What a person reads."""
        return await self.run("document.body.innerText")

    async def press(self, key: str, code: int) -> None:
        """A key, as from a keyboard."""
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            await self.do("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    async def resize(self, width: int, height: int, *, dark: bool = False) -> None:
        """The size of the window, and the colours that its person likes."""
        await self.do(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.do("Emulation.setEmulatedMedia", features=[scheme])

    async def picture(self) -> bytes:
        """What the window shows, as a PNG."""
        return base64.b64decode((await self.do("Page.captureScreenshot", format="png"))["data"])

    def take(self, method: str, params: dict[str, Any]) -> None:
        """An event of the page."""
        if method in ("Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening"):
            self.said.append({"event": method, **params})
        elif method == "Network.requestWillBeSent":
            self.asked.append(params["request"]["url"])


class Browser:
    """One process, and the pages in it."""

    def __init__(self, reader: asyncio.StreamReader, descriptor: int) -> None:
        self._reader = reader
        self._descriptor = descriptor
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._tabs: dict[str, Tab] = {}

    async def do(self, method: str, session: str | None = None, **params: Any) -> Any:
        """One command of the protocol."""
        number = next(self._numbers)
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        message = {"id": number, "method": method, "params": params, **({"sessionId": session} if session else {})}
        os.write(self._descriptor, orjson.dumps(message) + b"\0")
        return await waiting

    async def tab(self) -> Tab:
        """A new page."""
        target = (await self.do("Target.createTarget", url="about:blank"))["targetId"]
        session = (await self.do("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
        tab = self._tabs[session] = Tab(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            await tab.do(f"{domain}.enable")
        return tab

    async def listen(self) -> None:
        """Takes what the browser says, until it says no more."""
        while True:
            message = orjson.loads((await self._reader.readuntil(b"\0"))[:-1])
            waiting = self._waiting.pop(message.get("id", 0), None)
            if waiting is not None:
                error = message.get("error")
                if error is None:
                    waiting.set_result(message["result"])
                else:
                    waiting.set_exception(AssertionError(error))
            elif (tab := self._tabs.get(message.get("sessionId", ""))) is not None:
                tab.take(message["method"], message.get("params", {}))


@asynccontextmanager
async def browser() -> AsyncGenerator[Browser]:
    """A browser, ended in the end; gives up on the test where there is none."""
    program = next((found for name in PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        give_up("Chromium", "there is none: `make browser` installs it where it can")
    ends = [*os.pipe(), *os.pipe()]
    # The protocol wants descriptors 3 and 4: the pipes must not stand there already.
    theirs_in, ours_out, ours_in, theirs_out = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)

    def place() -> None:
        os.dup2(theirs_in, 3)
        os.dup2(theirs_out, 4)

    with tempfile.TemporaryDirectory(prefix="toolcrib-browser-", ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            program, *FLAGS, f"--user-data-dir={profile}", stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL, pass_fds=(3, 4), preexec_fn=place,
            env={**os.environ, "HOME": profile},
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        reader = asyncio.StreamReader(limit=64 * 1024 * 1024)
        loop = asyncio.get_running_loop()
        pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(ours_in, "rb"))
        made = Browser(reader, ours_out)
        listening = asyncio.ensure_future(made.listen())
        try:
            yield made
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            process.terminate()
            await process.wait()
            os.close(ours_out)
            pipe.close()
