"""The page in a real browser: what a person sees and does there, and that nothing of a server's ever becomes markup."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.console.browser import Tab, browser
from tests.console.consoles import SEARCHING, Page, console_page
from tests.console.test_views import TOOLS, call
from tests.fakes.memory_upstream import MemoryServer, eventually, tool

from toolcrib.gateway.http_connections import HttpServer
from toolcrib.gateway.listening import listen_on, url_of
from toolcrib.settings import ApprovalSettings, Settings, ToolSearchSettings, ToolsSettings

PAYLOADS = [
    "<script>window.taken=1</script>",
    "<img src=x onerror=window.taken=1>",
    "<svg/onload=window.taken=1>",
    '"><svg><animate onbegin=window.taken=1 attributeName=x>',
    "'><iframe srcdoc='<script>parent.taken=1</script>'>",
    "<a href=javascript:window.taken=1 autofocus onfocus=window.taken=1>x</a>",
    "<style>*{background:url(//evil.example/css)}</style><link rel=stylesheet href=//evil.example/a.css>",
    "<base href=//evil.example/><meta http-equiv=refresh content=0;url=//evil.example/>",
    "</pre></details><form action=//evil.example/><button>Allow once</button></form>",
    '<math><mtext></table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=window.taken=1&gt;">',
    "{{constructor.constructor('window.taken=1')()}}${window.taken=1}<%= window.taken=1 %>",
    "\u202e<script>window.taken=1</script>\u202c\u200b\x1b]8;;http://evil.example\x07link\x1b]8;;\x07",
]
CONTRAST = """(() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const ground = (node) => { for (let at = node; at; at = at.parentElement) {
    const colour = rgb(getComputedStyle(at).backgroundColor); if (colour.length === 3 || colour[3] > 0) return colour; } return [255, 255, 255]; };
  return [...document.querySelectorAll('body *')].filter((node) => node.checkVisibility() && !node.disabled
      && [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim()))
    .map((node) => { const pair = [light(rgb(getComputedStyle(node).color)), light(ground(node))].sort((a, b) => b - a);
      return [(pair[0] + .05) / (pair[1] + .05), node.tagName + '.' + node.className]; })
    .filter(([ratio]) => ratio < 4.5);
})()"""


@asynccontextmanager
async def shown(page: Page) -> AsyncGenerator[tuple[Tab, str]]:
    """The page in a tab, signed in by the printed link, and its address."""
    listening = listen_on("127.0.0.1:0")
    server = HttpServer(page.app)
    await server.listen(listening)
    address = f"{url_of(listening)}/console/"
    try:
        async with browser() as chromium:
            tab = await chromium.tab()
            await tab.resize(1180, 820)
            await tab.open(f"{address}#{page.console.entry.make_code()}")
            await tab.until("document.querySelector('nav:not([hidden])')")
            yield tab, address
    finally:
        page.console.close()
        await server.close()


async def view(tab: Tab, name: str, ready: str) -> None:
    """Goes to a view, as a person does."""
    await tab.run(f"document.querySelector('a[href=\"#{name}\"]').click()")
    await tab.until(ready)


async def search(tab: Tab, words: str) -> None:
    """Searches in the playground."""
    await view(tab, "search", "document.querySelector('form')")
    await tab.run("document.querySelector('form input').focus()")
    await tab.do("Input.insertText", text=words)
    await tab.press("Enter", 13)
    await tab.until("document.querySelector('details.card pre')")


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.requirement("J10", "I3", "X27")
async def test_whatever_a_server_writes_is_text_in_every_view(tmp_path: Path):
    tools = [
        tool(f"tool_{number}", f"Fetch {payload}", annotations={"title": payload})
        for number, payload in enumerate(PAYLOADS)
    ]
    server, fallen = MemoryServer(tools), MemoryServer()
    settings = Settings(tools=SEARCHING, screening="off", approvals=ApprovalSettings(rules={"*tool_1": "ask"}))
    sources = (server.source("hostile"), fallen.source("fallen"))
    async with console_page(*sources, directory=tmp_path, settings=settings, signed_in=False) as page:
        everything = "".join(PAYLOADS)
        fallen.links[-1].fail(everything)
        await eventually(lambda: sources[1].health.state == "down")
        for number, payload in enumerate(PAYLOADS):
            await call(page, f"hostile__tool_{number}", **{"text": payload, payload: 1})
        await call(page, "hostile__tool_1", text=everything)
        async with shown(page) as (tab, address):
            await tab.until("document.querySelectorAll('.row').length >= 12")
            await tab.run("document.querySelectorAll('.row').forEach((row) => { row.open = true; })")
            told = [await tab.text()]
            await search(tab, "fetch " + PAYLOADS[1])
            await tab.run("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
            told.append(await tab.text())
            await view(tab, "tokens", "document.querySelector('.verdict')")
            await view(tab, "approvals", "document.querySelectorAll('article').length >= 2")
            told.append(await tab.text())
            await view(tab, "servers", "document.querySelectorAll('.server').length === 2")
            told.append(await tab.text())
            taken = await tab.run("window.taken ?? null")
            foreign = await tab.run(
                "document.querySelectorAll('main :is(script, img, svg, iframe, style, link, base, meta, a, math)').length"
            )
            assert (taken, foreign) == (None, 0)
            assert tab.said == []
            assert [url for url in tab.asked if not url.startswith(address)] == []
        for text in told:
            assert "<img src=x onerror=window.taken=1>" in text, "it is shown as it is"
            assert not {"\u202e", "\u200b", "\x1b"} & set(text)
        assert "‹U+202E›" in told[-1]


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.requirement("X27", "X26")
async def test_the_search_page_says_what_was_looked_up_where_that_is_not_what_was_typed(tmp_path: Path):
    by_meaning = Settings(tools=ToolsSettings(tool_search=ToolSearchSettings(enabled="on")))
    async with (
        console_page(
            MemoryServer(TOOLS).source("git"), directory=tmp_path, settings=by_meaning, signed_in=False
        ) as page,
        shown(page) as (tab, _),
    ):
        await search(tab, "Could you please open an isssue")
        assert "Read as: open an issue" in await tab.text()


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.requirement("X27", "X22")
async def test_a_person_watches_searches_counts_allows_and_looks_after_servers(tmp_path: Path):
    server = MemoryServer(TOOLS)
    async with (
        console_page(server.source("git"), directory=tmp_path, signed_in=False) as page,
        shown(page) as (tab, address),
    ):
        assert await tab.run("location.href") == address, "the code is out of the address"
        await tab.until("document.body.innerText.includes('Nothing has run yet')")
        await call(page, "git__create_issue", text="hello")
        await tab.until("document.querySelector('.row .name')?.textContent === 'git__create_issue'")
        await tab.run("document.querySelector('.row summary').click()")
        assert "string(5)" in await tab.text()
        assert await tab.run("document.querySelectorAll('.row .line').length") >= 8

        await search(tab, "open an issue")
        text = await tab.text()
        assert "among 2 tools" in text and "create_issue(text?: str)" in text
        assert await tab.run("document.querySelectorAll('.hits .line').length") >= 2

        await view(tab, "tokens", "document.querySelector('.verdict')")
        assert "git 2 tools" in await tab.text()

        for allow, answer in ((1, "Allowed: the next call"), (2, "Refused.")):
            await call(page, "git__delete_repo", text=f"number {allow}")
            await view(tab, "approvals", f"document.body.innerText.includes('number {allow}')")
            await tab.run(f"document.querySelector('article .buttons button:nth-child({allow})').focus()")
            await tab.press("Enter", 13)
            await tab.until(f"document.body.innerText.includes('{answer}')")
            await view(tab, "servers", "document.querySelector('.server.up')")
        assert "isError" not in await call(page, "git__delete_repo", text="number 1")

        await call(page, "git__delete_repo", text="number 3")
        await view(tab, "approvals", "document.body.innerText.includes('number 3')")
        (waiting,) = page.gateway.desk.waiting()
        page.gateway.desk.refuse(waiting)
        await tab.run("document.querySelector('article .buttons button').click()")
        await tab.until("document.body.innerText.includes('does not wait any more')")

        await tab.run("document.querySelector('#sign-out').click()")
        await tab.until("document.querySelector('.sign-in')")
        await tab.open(f"{address}#search")
        await tab.until("document.querySelector('.sign-in')")

        code = page.console.entry.make_code()
        await tab.run(f"location.hash = '{code}'")
        await tab.until("document.querySelector('nav:not([hidden])')")
        assert await tab.run("location.href") == address, "a link that is opened in an open page is used, too"
        await tab.run(f"location.hash = '{code}'")
        await tab.until("document.body.innerText.includes('This signs nobody in')")
        assert await tab.run("!document.querySelector('.sign-in')"), "whoever is signed in stays so"
        page.console.feed.close()
        await tab.until("document.querySelectorAll('.row').length >= 4")
        assert [item for item in tab.said if item["event"] != "Log.entryAdded"] == []


HIDE = """Object.defineProperty(document, 'hidden', {{ value: {hidden}, configurable: true }});
document.dispatchEvent(new Event('visibilitychange'))"""


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.requirement("X27")
async def test_activity_tells_what_is_under_way_and_what_was_decided_and_rests_while_nobody_looks(tmp_path: Path):
    going_on = asyncio.Event()

    async def slow(params: dict[str, Any]) -> dict[str, Any]:
        await going_on.wait()
        return {"content": [{"type": "text", "text": "done"}]}

    server = MemoryServer(TOOLS, tools__call=slow)
    async with (
        console_page(server.source("git"), directory=tmp_path, signed_in=False) as page,
        shown(page) as (tab, _),
    ):
        running = asyncio.create_task(call(page, "git__create_issue", text="hello"))
        await tab.until("document.querySelector('.row .mark.running')?.title === 'under way'")
        await tab.run("document.querySelector('.row summary').click()")
        await tab.run(HIDE.format(hidden="true"))
        await eventually(lambda: [page.console.feed.beat(), page.console.feed.watching][1] == 0)
        going_on.set()
        await running
        await tab.run(HIDE.format(hidden="false"))
        await tab.until("document.querySelector('.row .mark.ok')")
        opened = await tab.run("document.querySelector('.row[open] dl')?.innerText ?? ''")
        assert "caller" in opened and "tokens" in opened, "it is open as it was"

        await call(page, "git__delete_repo", text="x")
        await view(tab, "approvals", "document.querySelector('article')")
        await tab.run("document.querySelector('article .quiet').click()")
        await tab.until("document.body.innerText.includes('Refused.')")
        await view(tab, "activity", "document.querySelector('.row .name')")
        await tab.until(
            "document.body.innerText.includes('approval decided → git__delete_repo: refused in the console')"
        )


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.requirement("X27")
async def test_every_page_of_a_browser_is_signed_out_with_the_others_and_no_old_word_stays(tmp_path: Path):
    async with (
        console_page(MemoryServer(TOOLS).source("git"), directory=tmp_path, signed_in=False) as page,
        shown(page) as (tab, address),
    ):
        other = await tab.another()
        await other.open(f"{address}#tokens")
        await other.until("document.querySelector('.verdict')")
        await tab.run("document.querySelector('#sign-out').click()")
        await other.until("document.querySelector('.sign-in')")
        assert "saved on every turn" not in await other.text()

        await tab.run(f"location.hash = '{page.console.entry.make_code()}'")
        await other.until("document.querySelector('.verdict')")

        await other.run("window.really = fetch; window.fetch = () => Promise.reject(new Error('down'))")
        await other.until("document.body.innerText.includes('does not answer')")
        assert await other.run("document.querySelector('#figures').textContent") == ""
        page.console.entry._visitors.clear()
        await other.run("window.fetch = window.really")
        await other.until("document.querySelector('.sign-in')")
        assert "does not answer" not in await other.text()


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.requirement("X27")
async def test_an_earlier_search_that_takes_longer_does_not_answer_for_the_last_one(tmp_path: Path):
    async with (
        console_page(MemoryServer(TOOLS).source("git"), directory=tmp_path, signed_in=False) as page,
        shown(page) as (tab, _),
    ):
        await view(tab, "search", "document.querySelector('form')")
        await tab.run(
            """window.really = fetch; window.fetch = (where, options) => String(options.body).includes('delete')
            ? new Promise((resolve, reject) => {
                options.signal.addEventListener('abort', () => reject(options.signal.reason));
                window.answer = () => resolve(window.really(where, { ...options, signal: undefined })); })
            : window.really(where, options)"""
        )
        ask = "document.querySelector('input').value = '{}'; document.querySelector('form').requestSubmit()"
        await tab.run(ask.format("delete a repository"))
        await tab.run(ask.format("open an issue"))
        await tab.until("document.querySelector('.hits')?.innerText.includes('create_issue')")
        shown_first = await tab.run("document.querySelector('.hits').innerText")
        await tab.run("window.answer(); fetch('icon.svg', {}).then((answer) => answer.text())")
        assert await tab.run("document.querySelector('.hits').innerText") == shown_first
        assert await tab.run("document.querySelector('#notice').hidden")


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.requirement("X27")
async def test_cards_of_servers_stay_while_nothing_changes_and_fit_any_name(tmp_path: Path):
    fallen = MemoryServer()
    sources = (MemoryServer(TOOLS).source("git"), fallen.source("x" * 120))
    async with console_page(*sources, directory=tmp_path, signed_in=False) as page, shown(page) as (tab, _):
        await view(tab, "servers", "document.querySelectorAll('.server.up').length === 2")
        await tab.run("window.before = [...document.querySelectorAll('.server')]")
        asked = len(tab.asked)
        await tab.until("document.querySelector('.server')")
        await eventually(lambda: any(url.endswith("api/health") for url in tab.asked[asked:]))
        same = "[...document.querySelectorAll('.server')].filter((card) => window.before.includes(card)).length"
        assert await tab.run(same) == 2
        fallen.methods.clear()
        fallen.links[-1].fail("gone")
        await tab.until("document.querySelector('.server.down')")
        assert await tab.run(same) == 1, "the other one is as it was"
        for name in ("servers", "activity", "search", "tokens"):
            await view(tab, name, "document.querySelector('h1')")
            for width in (1180, 390):
                await tab.resize(width, 844)
                assert not await tab.run("document.documentElement.scrollWidth > innerWidth"), (name, width)
        await view(tab, "servers", "document.querySelector('.server.down')")
        place = "document.querySelector('.state.down').getBoundingClientRect()"
        assert await tab.run(f"{place}.right <= innerWidth && {place}.width > 10")


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.requirement("X27")
async def test_the_page_can_be_read_and_used_by_keyboard_on_any_screen(tmp_path: Path):
    fallen = MemoryServer()
    sources = (MemoryServer(TOOLS).source("git"), fallen.source("fallen-with-a-rather-long-name-for-a-server"))
    async with console_page(*sources, directory=tmp_path, signed_in=False) as page, shown(page) as (tab, _):
        fallen.methods.clear()
        fallen.links[-1].fail("it ended with exit code 3; its last words: " + "x" * 200)
        for _ in range(2):
            await call(page, "git__create_issue")
            await call(page, "git__delete_repo", text="x" * 300)
        places = {
            "activity": "document.querySelector('.row')",
            "search": "document.querySelector('form')",
            "tokens": "document.querySelector('.verdict')",
            "approvals": "document.querySelector('article')",
            "servers": "document.querySelector('.server.down')",
        }
        await view(tab, "activity", places["activity"])
        await search(tab, "open an issue")
        for name, ready in places.items():
            await view(tab, name, ready)
            for width, dark in ((1180, False), (1180, True), (390, False), (390, True)):
                await tab.resize(width, 844, dark=dark)
                assert not await tab.run("document.documentElement.scrollWidth > innerWidth"), (name, width)
                # A colour that still changes is between two.
                await tab.until("document.getAnimations().length === 0")
                assert await tab.run(CONTRAST) == [], (name, dark)
            fields = "[...document.querySelectorAll('input, select')].every((field) => field.labels.length === 1)"
            assert await tab.run(fields), name
        await tab.run("document.querySelector('#views a').focus()")
        for _ in range(2):
            await tab.press("Tab", 9)
        await tab.press("Enter", 13)
        await tab.until("document.querySelector('h1').textContent === 'Tokens'")
