"""A console for tests: a real gateway over servers in memory, and a page that speaks to it without a browser."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.fakes.memory_upstream import MemoryServer
from tests.gateway.http_clients import Answer, client_of

from toolcrib.console.app import Console
from toolcrib.crib import Crib
from toolcrib.gateway.annex import AnnexApp
from toolcrib.gateway.approvals import ClientApprover
from toolcrib.gateway.auth import TokenFile
from toolcrib.gateway.changes import ChangeFeed
from toolcrib.gateway.desk import ApprovalDesk
from toolcrib.gateway.door import Door
from toolcrib.gateway.http import HttpApp
from toolcrib.gateway.profiles import Profiles
from toolcrib.gateway.server import Gateway
from toolcrib.settings import ApprovalSettings, ProfileSettings, Settings, ToolSearchSettings, ToolsSettings
from toolcrib.sources.mcp_source import McpSource

HOST = "127.0.0.1:8765"
ORIGIN = f"http://{HOST}"
SEARCHING = ToolsSettings(tool_search=ToolSearchSettings(enabled="on", retrieval="lexical"))
SETTINGS = Settings(tools=SEARCHING, approvals=ApprovalSettings(rules={"*delete*": "ask"}))


class Page:
    """What a browser holds and sends for the console's page."""

    def __init__(self, console: Console, gateway: Gateway, door: Door, app: HttpApp) -> None:
        self.console = console
        self.gateway = gateway
        self.door = door
        self.app = app
        """The gateway's own address, with the console on it."""
        self.apart = AnnexApp(console, door)
        """The console on an address of its own."""
        self.cookie = ""
        self.token = ""

    async def ask(self, path: str, body: Any = None, *, method: str = "", **headers: str) -> Answer:
        """One request of the page, with everything that its browser sends; blank headers are left out."""
        fields = {"host": HOST, "accept": "*/*", "sec_fetch_site": "same-origin", "cookie": self.cookie}
        fields["x_toolcrib_console"] = self.token
        fields["origin"] = ORIGIN if body is not None else ""
        async with client_of(self.app) as client:
            client.send(
                method or ("GET" if body is None else "POST"),
                f"/console/{path}",
                b"" if body is None else body,
                **fields | headers,
            )
            return await client.answer()

    async def sign_in(self, secret: str | None = None) -> Answer:
        """Signs in with the code of the printed link, or with a secret."""
        answer = await self.ask("api/sign-in", {"secret": secret or self.console.entry.make_code()})
        if answer.status == 200:
            self.token = answer.json["token"]
            self.cookie = answer.headers["set-cookie"].partition(";")[0]
        return answer


@asynccontextmanager
async def console_page(
    *sources: McpSource, directory: Path, settings: Settings = SETTINGS, signed_in: bool = True
) -> AsyncGenerator[Page]:
    """The page of a gateway over these servers."""
    desk = ApprovalDesk(directory / "desk", ttl_s=settings.approvals.ttl_s)
    servers = sources or (MemoryServer().source("one"),)
    crib = Crib(*servers, settings=settings, core=(), approver=ClientApprover(desk=desk))
    gateway = Gateway(crib, Profiles({"none": ProfileSettings(tools=("nothing",))}), desk=desk)
    door = Door(tokens=TokenFile(directory / "tokens.json"))
    async with crib:
        changes = ChangeFeed(crib)
        console = Console(gateway, door)
        app = HttpApp(gateway, changes, door=door, anonymous=gateway.profiles.principal("local"), annex=console)
        page = Page(console, gateway, door, app)
        await gateway.wait_settled()
        if signed_in:
            assert (await page.sign_in()).status == 200
        try:
            yield page
        finally:
            console.close()
            app.sessions.close()
            changes.close()
