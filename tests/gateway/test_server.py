import asyncio
from typing import Any

import orjson
import pytest
from tests.fakes.memory_upstream import MemoryServer, eventually, tool
from tests.gateway.clients import META, gateway_client

from toolcrib.crib import Crib
from toolcrib.gateway.profiles import Profiles
from toolcrib.gateway.relay import ClientExchange
from toolcrib.gateway.server import Gateway
from toolcrib.limits import LISTENERS_MAX
from toolcrib.settings import (
    ApprovalRules,
    ApprovalSettings,
    ProfileSettings,
    Settings,
    ToolSearchSettings,
    ToolsSettings,
)
from toolcrib.sources.json_rpc import RpcError

ON = Settings(tools=ToolsSettings(tool_search=ToolSearchSettings(enabled="on", retrieval="lexical")))
ASK = Settings(approvals=ApprovalSettings(rules={"*echo": "ask"}))
BOTH = pytest.mark.parametrize("modern", [False, True])


@BOTH
@pytest.mark.requirement("X16", "X18")
async def test_below_the_gate_every_tool_is_listed_with_all_its_fields(modern: bool):
    server = MemoryServer([tool("echo", vendorField={"x": 1}, annotations={"readOnlyHint": True, "vendorHint": 2})])
    async with gateway_client(server.source("one"), modern=modern) as client:
        answer = (await client.ask("tools/list"))["result"]
    assert answer["tools"] == [{**server.tools[0], "name": "one__echo"}]
    assert (answer.get("resultType"), answer.get("cacheScope")) == (("complete", "public") if modern else (None, None))


@BOTH
@pytest.mark.requirement("X16", "X18")
async def test_above_the_gate_the_bridge_is_listed_with_honest_annotations(modern: bool):
    async with gateway_client(MemoryServer().source("one"), modern=modern, settings=ON) as client:
        tools = (await client.ask("tools/list"))["result"]["tools"]
    assert [item["name"] for item in tools] == ["tool_search", "tool_describe", "tool_call"]
    assert [item["annotations"]["readOnlyHint"] for item in tools] == [True, True, False]
    assert tools[2]["inputSchema"]["properties"]["name"]["x-mcp-header"] == "Tool"


@BOTH
@pytest.mark.requirement("X17", "X18")
async def test_searching_asks_no_server_and_a_bridged_call_asks_one_once(modern: bool):
    server = MemoryServer([tool("echo", "Repeats a text.")])
    other = MemoryServer([tool("other")])
    async with gateway_client(server.source("one"), other.source("two"), modern=modern, settings=ON) as client:
        await client.names()
        before, others = len(server.received), len(other.received)
        await client.call("tool_search", {"query": "repeat a text"})
        await client.call("tool_describe", {"name": "one__echo"})
        assert (len(server.received), len(other.received)) == (before, others)
        answer = await client.call("tool_call", {"name": "one__echo", "arguments": {"text": "hi"}})
        assert (len(server.received), len(other.received)) == (before + 1, others)
    assert answer["result"]["content"] == [{"type": "text", "text": "hi"}]
    assert answer["result"]["vendorField"] == {"kept": True}


@BOTH
@pytest.mark.requirement("X2", "X17")
async def test_a_first_search_waits_for_servers_that_are_still_starting(modern: bool):
    up = asyncio.Event()

    async def list_late(params: object) -> dict[str, Any]:
        await up.wait()
        return {"tools": [tool("echo", "Repeats a text.")]}

    source = MemoryServer(tools__list=list_late).source("one")
    async with gateway_client(source, modern=modern, settings=ON) as client:
        search = asyncio.ensure_future(client.call("tool_search", {"query": "repeat a text"}))
        describe = asyncio.ensure_future(client.call("tool_describe", {"name": "one__echo"}))
        await eventually(lambda: len(client.server._running) == 2)
        up.set()
        found, described = str(await search), str(await describe)
    assert "one__echo" in found and "abstained" not in found
    assert "Repeats a text." in described


@pytest.mark.requirement("A11", "G1")
async def test_a_server_gets_what_was_checked_and_nothing_else_of_the_client():
    server = MemoryServer()
    async with gateway_client(server.source("one")) as client:
        await client.names()
        meta = {"progressToken": "mine", "traceparent": "00-a-b-01", "secret": "canary"}
        await client.call("one__echo", {"text": "x"}, _meta=meta, extra="canary")
    sent = server.received[-1]["params"]
    assert sent["name"] == "echo"
    assert sent["arguments"] == {"text": "x"}
    assert set(sent["_meta"]) == {"traceparent", "progressToken"}
    assert sent["_meta"]["progressToken"] != "mine"
    assert "canary" not in str(server.received)


@pytest.mark.requirement("A1", "A2", "A3", "A4", "X19")
async def test_outside_the_grant_nothing_is_seen_and_nothing_differs_from_what_never_was():
    mine, theirs = MemoryServer([tool("list_files")]), MemoryServer([tool("delete_everything")])
    profile = ProfileSettings(toolsets=("mcp-mine",))
    sources = (mine.source("mine"), theirs.source("theirs"))
    async with gateway_client(*sources, settings=ON, profile=profile) as client:
        listed = str(await client.ask("tools/list"))
        await client.call("tool_call", {"name": "mine__list_files", "arguments": {}})
        before = len(theirs.received)
        texts: list[str] = []
        for name in ("theirs__delete_everything", "theirs__never_was_here_at"):
            for bridge in ("tool_call", "tool_describe"):
                answer = await client.call(
                    bridge, {"name": name} | ({"arguments": {}} if bridge == "tool_call" else {})
                )
                texts.append(str(answer["result"]).replace(name, "NAME"))
            direct = await client.call(name)
            texts.append(str(direct["error"]).replace(name, "NAME"))
        found = str(await client.call("tool_search", {"query": "delete everything"}))
    assert texts[:3] == texts[3:]
    assert "delete_everything" not in listed
    assert "theirs__delete" not in found
    assert len(theirs.received) == before


@pytest.mark.requirement("A17")
async def test_the_list_is_the_same_after_searching_describing_and_calling():
    async with gateway_client(MemoryServer().source("one"), settings=ON) as client:
        before = await client.ask("tools/list")
        await client.call("tool_search", {"query": "echo"})
        await client.call("tool_call", {"name": "one__echo", "arguments": {}})
        after = await client.ask("tools/list")
    assert before["result"] == after["result"]


@pytest.mark.requirement("X19")
async def test_a_read_only_profile_has_read_only_tools_and_a_pinned_one_stays_in_the_list():
    server = MemoryServer([tool("see", annotations={"readOnlyHint": True}), tool("change"), tool("look",
        annotations={"readOnlyHint": True})])  # fmt: skip
    profile = ProfileSettings(read_only=True, always_visible=("one__see",))
    async with gateway_client(server.source("one"), settings=ON, profile=profile) as client:
        names = await client.names()
        refused = await client.call("one__change")
    assert names == ["one__see", "tool_search", "tool_describe", "tool_call"]
    assert "not available" in refused["error"]["message"]


@pytest.mark.requirement("X18")
async def test_an_error_of_the_server_is_relayed_as_it_is():
    def refuse(params: Any) -> Any:
        raise RpcError(-32042, "open this", {"url": "https://x"})

    async with gateway_client(MemoryServer(tools__call=refuse).source("one")) as client:
        await client.names()
        answer = await client.call("one__echo")
    assert answer["error"] == {"code": -32042, "message": "open this", "data": {"url": "https://x"}}


@pytest.mark.requirement("X18", "L3")
async def test_progress_comes_back_under_the_clients_own_token():
    server = MemoryServer()

    async def slow(params: Any) -> Any:
        token = params["_meta"]["progressToken"]
        server.push({"method": "notifications/progress", "params": {"progressToken": token, "progress": 5}})
        return {"content": []}

    server.methods["tools/call"] = slow
    async with gateway_client(server.source("one")) as client:
        await client.names()
        await client.call("one__echo", _meta={"progressToken": "abc"})
        told = await client.next(method="notifications/progress")
    assert told["params"] == {"progressToken": "abc", "progress": 5}


@pytest.mark.requirement("K16", "X18")
@pytest.mark.parametrize(
    "message",
    [
        b'"method":"notifications/message","params":null',
        b'"method":"notifications/message","params":[1]',
        b'"method":"notifications/message","params":{"data":"\xff"}',
        b'"method":"notifications/progress","params":{"progressToken":%%d,"progress":1,"x":%b}'
        % (b'{"a":' * 300 + b"1" + b"}" * 300),
    ],
)
async def test_a_message_that_cannot_be_passed_on_is_left_out_and_those_after_it_count(
    message: bytes, caplog: pytest.LogCaptureFixture
):
    server = MemoryServer()

    async def slow(params: Any) -> Any:
        token = params["_meta"]["progressToken"]
        server.links[-1].receive(b'{"jsonrpc":"2.0",%b}' % (message % token if b"%d" in message else message))
        server.push({"method": "notifications/message", "params": {"level": "error", "data": "good"}})
        return {"content": []}

    server.methods["tools/call"] = slow
    async with gateway_client(server.source("one")) as client:
        await client.names()
        answer = await client.call("one__echo", _meta={"progressToken": "abc"})
        told = [message["params"] for message in client.messages]
    assert "result" in answer
    assert told == [{"level": "error", "data": "good"}]
    assert not caplog.records


@pytest.mark.requirement("X18", "K3")
async def test_a_cancelled_call_is_cancelled_at_the_server_and_never_answered():
    server = MemoryServer(tools__call=lambda params: asyncio.Event().wait())
    async with gateway_client(server.source("one")) as client:
        await client.names()
        client.send({"id": "slow", "method": "tools/call", "params": {"name": "one__echo"}})
        await eventually(lambda: server.count("tools/call"))
        client.send({"method": "notifications/cancelled", "params": {"requestId": "slow"}})
        await eventually(lambda: server.count("notifications/cancelled"))
        await client.ask("ping")
        assert not client.messages


@pytest.mark.requirement("X18")
async def test_a_modern_servers_question_travels_to_a_modern_client_and_the_answer_back():
    def ask(params: Any) -> Any:
        if "inputResponses" not in params:
            request = {"method": "elicitation/create", "params": {"message": "Who?"}}
            return {"resultType": "input_required", "inputRequests": {"q": request}, "requestState": "sealed"}
        return {"resultType": "complete", "content": [], "structuredContent": params["inputResponses"]["q"]}

    server = MemoryServer(era="modern", tools__call=ask)
    async with gateway_client(server.source("one"), modern=True, capabilities={"elicitation": {}}) as client:
        await client.names()
        first = (await client.call("one__echo"))["result"]
        again = await client.call("one__echo", inputResponses={"q": {"who": "me"}}, requestState="sealed")
    assert first["requestState"] == "sealed"
    assert again["result"]["structuredContent"] == {"who": "me"}
    assert server.received[-1]["params"]["requestState"] == "sealed"


@pytest.mark.requirement("X18")
async def test_a_modern_servers_question_is_asked_of_an_old_client_in_its_own_way():
    def ask(params: Any) -> Any:
        if "inputResponses" not in params:
            request = {"method": "elicitation/create", "params": {"message": "Who?"}}
            return {"resultType": "input_required", "inputRequests": {"q": request}, "requestState": "sealed"}
        return {"resultType": "complete", "content": [], "structuredContent": params["inputResponses"]["q"]}

    server = MemoryServer(era="modern", tools__call=ask)
    async with gateway_client(server.source("one"), capabilities={"elicitation": {}}) as client:
        await client.names()
        task = asyncio.create_task(client.call("one__echo"))
        question = await client.next(method="elicitation/create")
        client.send({"id": question["id"], "result": {"action": "accept", "content": {"who": "me"}}})
        answer = await task
    assert answer["result"]["structuredContent"]["content"] == {"who": "me"}


@pytest.mark.requirement("X22", "B2")
@pytest.mark.parametrize(("allow", "ran"), [(True, True), (False, False)])
async def test_an_old_client_is_asked_for_approval_while_the_call_waits(allow: bool, ran: bool):
    server = MemoryServer()
    async with gateway_client(server.source("one"), capabilities={"elicitation": {}}, settings=ASK) as client:
        await client.names()
        task = asyncio.create_task(client.call("one__echo", {"text": "a\u202eb"}))
        question = await client.next(method="elicitation/create")
        assert "one__echo" in question["params"]["message"]
        assert "\u202e" not in question["params"]["message"]
        client.send({"id": question["id"], "result": {"action": "accept", "content": {"allow": allow}}})
        answer = await task
    assert bool(server.count("tools/call")) is ran
    assert answer["result"].get("isError", False) is not ran


@pytest.mark.requirement("X22", "G8")
async def test_a_modern_client_approves_by_answering_and_no_answer_counts_for_other_arguments():
    server = MemoryServer()
    able = {"elicitation": {}}
    async with gateway_client(server.source("one"), modern=True, capabilities=able, settings=ASK) as client:
        await client.names()
        asked = (await client.call("one__echo", {"text": "a"}))["result"]
        yes = {"inputResponses": {"toolcrib-approval": {"action": "accept", "content": {"allow": True}}}}
        state = asked["requestState"]
        other = (await client.call("one__echo", {"text": "b"}, **yes, requestState=state))["result"]
        wrong = state[:-1] + ("0" if state[-1] != "0" else "1")
        forged = (await client.call("one__echo", {"text": "a"}, **yes, requestState=wrong))["result"]
        assert asked["resultType"] == other["resultType"] == forged["resultType"] == "input_required"
        assert not server.count("tools/call")
        done = (await client.call("one__echo", {"text": "a"}, **yes, requestState=state))["result"]
        replayed = (await client.call("one__echo", {"text": "a"}, **yes, requestState=state))["result"]
    assert done["content"] == [{"type": "text", "text": "a"}]
    assert replayed["resultType"] == "input_required"
    assert "toolcrib-approval" not in str(server.received)


@pytest.mark.requirement("X22", "G8")
@pytest.mark.parametrize(("after_s", "ran"), [(29, 1), (31, 0)])
async def test_the_answer_of_a_modern_client_counts_for_as_long_as_the_configuration_says(after_s: float, ran: int):
    server, now = MemoryServer(), [1000.0]
    async with gateway_client(
        server.source("one"),
        modern=True,
        capabilities={"elicitation": {}},
        settings=Settings(approvals=ApprovalSettings(rules={"echo": "ask"}, ttl_s=30)),
        clock=lambda: now[0],
    ) as client:
        await client.names()
        state = (await client.call("one__echo", {"text": "a"}))["result"]["requestState"]
        now[0] += after_s
        yes = {"toolcrib-approval": {"action": "accept", "content": {"allow": True}}}
        await client.call("one__echo", {"text": "a"}, inputResponses=yes, requestState=state)
    assert server.count("tools/call") == ran


@pytest.mark.requirement("X22", "B14")
async def test_a_client_that_cannot_ask_is_refused_with_what_would_allow_it():
    server = MemoryServer()
    async with gateway_client(server.source("one"), settings=ASK) as client:
        await client.names()
        answer = await client.call("one__echo", {"text": "a"})
    assert "approvals.rules" in answer["result"]["content"][0]["text"]
    assert not server.count("tools/call")


@pytest.mark.parametrize(
    ("general", "own", "ran", "said"),
    [
        ({}, {"default": "deny"}, 0, "not allowed here"),
        ({}, {"rules": {"*echo": "ask"}}, 0, "`profiles.test.approvals.rules`"),
        ({"rules": {"*echo": "ask"}}, {"rules": {"*echo": "allow"}}, 0, "`approvals.rules`"),
        ({"rules": {"*echo": "deny"}}, {"rules": {"*echo": "ask"}}, 0, "not allowed here"),
        ({}, {"rules": {"other*": "deny"}}, 1, "hi"),
    ],
)
@pytest.mark.requirement("X19", "X22")
async def test_a_profiles_own_rules_can_ask_more_and_deny_more_and_never_allow_more(
    general: Any, own: Any, ran: int, said: str
):
    server = MemoryServer()
    settings = Settings(approvals=ApprovalSettings(**general))
    profile = ProfileSettings(approvals=ApprovalRules(**own))
    async with gateway_client(server.source("one"), settings=settings, profile=profile) as client:
        await client.names()
        answer = await client.call("one__echo", {"text": "hi"})
    assert server.count("tools/call") == ran
    assert said in str(answer)


@pytest.mark.requirement("X20")
async def test_prompts_and_resources_are_passed_on_prefixed():
    server = MemoryServer(
        prompts__list=lambda params: {"prompts": [{"name": "greet"}]},
        prompts__get=lambda params: {"messages": [], "description": params["name"]},
        resources__list=lambda params: {"resources": [{"uri": "repo://a", "name": "a"}]},
        resources__templates__list=lambda params: {"resourceTemplates": [{"uriTemplate": "repo://x/{id}"}]},
        resources__read=lambda params: {"contents": [{"uri": params["uri"], "text": "t"}]},
    )
    async with gateway_client(server.source("my_one")) as client:
        prompts = (await client.ask("prompts/list"))["result"]["prompts"]
        prompt = (await client.ask("prompts/get", name="my_one__greet"))["result"]
        resources = (await client.ask("resources/list"))["result"]["resources"]
        templates = (await client.ask("resources/templates/list"))["result"]["resourceTemplates"]
        read = (await client.ask("resources/read", uri="my.one+repo://a"))["result"]["contents"]
        plain = (await client.ask("resources/read", uri="repo://x/7"))["result"]["contents"]
        missing = await client.ask("resources/read", uri="other://a")
    assert prompts == [{"name": "my_one__greet"}]
    assert prompt["description"] == "greet"
    assert resources[0]["uri"] == "my.one+repo://a"
    assert templates[0]["uriTemplate"] == "my.one+repo://x/{id}"
    assert read == [{"uri": "my.one+repo://a", "text": "t"}]
    assert plain == [{"uri": "repo://x/7", "text": "t"}]
    assert missing["error"]["code"] == -32002


@pytest.mark.requirement("X17", "K5")
async def test_while_a_server_is_down_its_tools_are_found_and_marked_and_calls_say_why():
    server = MemoryServer([tool("echo", "Repeats a text.")])
    async with gateway_client(server.source("one"), settings=ON) as client:
        await client.names()
        server.links[-1].fail("it exited with code 9")
        told = await client.next(method="notifications/tools/list_changed")
        described = str(await client.call("tool_describe", {"name": "one__echo"}))
        called = str(await client.call("tool_call", {"name": "one__echo", "arguments": {}}))
    assert told
    assert "code 9" in described
    assert "code 9" in called


@pytest.mark.requirement("X17", "S15")
async def test_a_changed_list_is_announced_and_served():
    server = MemoryServer([tool("first")])
    async with gateway_client(server.source("one")) as client:
        assert await client.names() == ["one__first"]
        server.tools = [tool("first"), tool("second")]
        server.push({"method": "notifications/tools/list_changed"})
        await client.next(method="notifications/tools/list_changed")
        assert await client.names() == ["one__first", "one__second"]


@pytest.mark.requirement("X17", "S15")
async def test_who_lists_once_the_servers_are_up_is_not_told_that_they_came_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("toolcrib.gateway.changes.REFRESH_EVERY_S", 0.0)
    gate = asyncio.Event()

    async def list_late(params: Any) -> Any:
        await gate.wait()
        return {"tools": late.tools}

    more: Any = {
        "prompts__list": lambda params: {"prompts": [{"name": "greet"}]},
        "resources__list": lambda params: {"resources": [{"uri": "repo://a", "name": "a"}]},
    }
    early, late = MemoryServer(**more), MemoryServer(tools__list=list_late, **more)
    sources = [early.source("early"), late.source("late")]
    async with gateway_client(*sources) as client:
        asked = asyncio.create_task(client.names())
        await sources[0].settled.wait()
        await eventually(lambda: not client.changes._pending)
        gate.set()
        assert await asked == ["early__echo", "late__echo"]
        assert len((await client.ask("prompts/list"))["result"]["prompts"]) == 2
        assert len((await client.ask("resources/list"))["result"]["resources"]) == 2
        await client.ask("resources/templates/list")
        await eventually(lambda: not client.changes._pending)
        assert client.messages == []
        late.tools = [tool("other")]
        late.push({"method": "notifications/tools/list_changed"})
        await client.next(method="notifications/tools/list_changed")
        assert await client.names() == ["early__echo", "late__other"]


@pytest.mark.requirement("X17")
async def test_prompts_and_resources_that_change_are_announced_to_whoever_listed_them():
    prompts, resources = [{"name": "greet"}], [{"uri": "repo://a", "name": "a"}]
    server = MemoryServer(
        prompts__list=lambda params: {"prompts": prompts}, resources__list=lambda params: {"resources": resources}
    )
    async with gateway_client(server.source("one")) as client:
        await client.ask("prompts/list")
        await client.ask("resources/templates/list")
        prompts, resources = [{"name": "part"}], []
        server.push({"method": "notifications/prompts/list_changed"})
        server.push({"method": "notifications/resources/list_changed"})
        await client.next(method="notifications/prompts/list_changed")
        await client.next(method="notifications/resources/list_changed")
        assert (await client.ask("prompts/list"))["result"]["prompts"] == [{"name": "one__part"}]


@pytest.mark.requirement("X17")
@pytest.mark.parametrize("again", ["resources/list", "resources/templates/list"])
async def test_who_lists_resources_again_still_hears_of_templates_and_the_other_way_round(
    again: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("toolcrib.gateway.changes.REFRESH_EVERY_S", 10_000.0)  # not before the test says so
    resources, templates = [{"uri": "repo://a", "name": "a"}], [{"uriTemplate": "repo://x/{id}", "name": "x"}]
    server = MemoryServer(
        resources__list=lambda params: {"resources": resources},
        resources__templates__list=lambda params: {"resourceTemplates": templates},
    )
    async with gateway_client(server.source("one")) as client:
        await client.ask("resources/list")
        await client.ask("resources/templates/list")
        client.changes._flush()
        assert client.messages == []
        resources, templates = [], []
        server.push({"method": "notifications/resources/list_changed"})
        await eventually(lambda: any(event == "resources" for event, _ in client.changes._pending))
        await client.ask(again)
        client.changes._flush()
        await client.next(method="notifications/resources/list_changed")


@pytest.mark.requirement("X16")
async def test_a_modern_client_subscribes_and_is_told():
    server = MemoryServer([tool("first")])
    async with gateway_client(server.source("one"), modern=True) as client:
        await client.names()
        task = asyncio.create_task(client.ask("subscriptions/listen", notifications={"toolsListChanged": True}))
        acknowledged = await client.next(method="notifications/subscriptions/acknowledged")
        server.tools = [tool("second")]
        server.push({"method": "notifications/tools/list_changed"})
        told = await client.next(method="notifications/tools/list_changed")
        task.cancel()
    assert acknowledged["params"]["notifications"] == {"toolsListChanged": True}
    assert told["params"]["_meta"] == acknowledged["params"]["_meta"]


@pytest.mark.requirement("E1", "X16")
async def test_a_client_that_names_any_resource_hears_of_those_that_it_was_granted():
    servers = {name: MemoryServer([tool("t")]) for name in ("mine", "theirs")}
    sources = [server.source(name) for name, server in servers.items()]
    profile = ProfileSettings(toolsets=("mcp-mine",))
    async with gateway_client(*sources, modern=True, profile=profile) as client:
        await client.names()
        named = {"resourceSubscriptions": ["theirs+repo://a", "mine+repo://a"]}
        task = asyncio.create_task(client.ask("subscriptions/listen", notifications=named))
        await client.next(method="notifications/subscriptions/acknowledged")
        for name in ("theirs", "mine"):
            servers[name].push({"method": "notifications/resources/updated", "params": {"uri": "repo://a"}})
        told = await client.next(method="notifications/resources/updated")
        task.cancel()
    assert told["params"]["uri"] == "mine+repo://a"
    assert not [message for message in client.messages if message.get("method") == "notifications/resources/updated"]


@pytest.mark.requirement("X16")
async def test_so_many_modern_clients_listen_and_old_ones_take_no_place_from_them():
    async with gateway_client(MemoryServer().source("one"), modern=True) as client:
        await client.names()
        quiet = client.server._client
        assert quiet is not None
        for _ in range(LISTENERS_MAX):
            client.changes.follow(quiet, client.server.push)
        tasks = [asyncio.create_task(client.ask("subscriptions/listen")) for _ in range(LISTENERS_MAX)]
        for _ in tasks:
            await client.next(method="notifications/subscriptions/acknowledged")
        refused = await client.ask("subscriptions/listen")
        client.changes.close()
        answers = await asyncio.gather(*tasks)
    assert refused["error"]["message"] == "Too many subscriptions are open."
    assert all(answer["result"]["resultType"] == "complete" for answer in answers)


@pytest.mark.requirement("E1")
async def test_malformed_messages_are_answered_and_the_connection_survives():
    async with gateway_client(MemoryServer().source("one")) as client:
        for line in (b"{", b"[]", b'{"jsonrpc":"2.0","id":5}', b'{"jsonrpc":"2.0","id":6,"method":"x","params":[]}'):
            client.server.feed(line + b"\n")
        client.server.feed(b"x" * (5 * 1024 * 1024) + b"\n")
        unknown = await client.ask("no/such/method")
        assert (await client.ask("ping"))["result"] == {}
        codes = [message["error"]["code"] for message in client.messages]
    assert unknown["error"]["code"] == -32601
    assert codes == [-32700, -32600, -32602, -32600]


@pytest.mark.requirement("E1")
@pytest.mark.parametrize("identifier", [[1], {"a": 1}, None, 1.5, "no such", 99])
async def test_a_cancellation_of_nothing_is_not_answered(identifier: Any):
    async with gateway_client(MemoryServer().source("one")) as client:
        client.send({"method": "notifications/cancelled", "params": {"requestId": identifier}})
        client.send({"method": "notifications/cancelled", "params": {}})
        assert (await client.ask("ping"))["result"] == {}
        assert client.messages == []


@pytest.mark.requirement("X16")
async def test_the_eras_do_not_mix_on_one_connection():
    async with gateway_client(MemoryServer().source("one"), modern=True) as client:
        await client.names()
        client.send({"id": 50, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}})
        assert (await client.next(id=50))["error"]["code"] == -32022
        client.send({"id": 51, "method": "tools/list", "params": {}})
        assert (await client.next(id=51))["error"]["code"] == -32600
        client.send({"id": 52, "method": "tools/list", "params": {
            "_meta": {"io.modelcontextprotocol/protocolVersion": "2099-01-01",
                      "io.modelcontextprotocol/clientCapabilities": {}}}})  # fmt: skip
        assert (await client.next(id=52))["error"]["data"]["supported"] == ["2026-07-28"]


@BOTH
@pytest.mark.requirement("E1")
async def test_the_last_request_needs_no_line_end_if_nothing_more_comes(modern: bool):
    async with gateway_client(MemoryServer().source("one"), modern=modern) as client:
        await client.names()
        params = {"name": "one__echo", "arguments": {"text": "last"}, **({"_meta": META} if modern else {})}
        client.server.feed(orjson.dumps({"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": params}))
        client.server.end()
        assert (await client.next(id=77))["result"]["content"][0]["text"] == "last"
        client.server.feed(b" ")
        client.server.end()
        assert not client.messages


@BOTH
@pytest.mark.requirement("E1")
async def test_a_request_whose_id_is_null_is_told_so(modern: bool):
    server = MemoryServer()
    async with gateway_client(server.source("one"), modern=modern) as client:
        client.send({"id": None, "method": "tools/call", "params": {"name": "one__echo"}})
        answer = await client.next(id=None)
    assert (answer["error"]["code"], "`id`" in answer["error"]["message"]) == (-32600, True)
    assert not server.count("tools/call")


@pytest.mark.requirement("A1")
async def test_a_list_that_others_do_not_get_is_kept_for_nobody_else():
    crib = Crib(MemoryServer().source("one"), core=())
    async with crib:
        for profiles, scope in (({}, "public"), ({"same": ProfileSettings()}, "public"), ({"less": LESS}, "private")):
            gateway = Gateway(crib, Profiles(profiles))
            who = gateway.profiles.principal("ann")
            client = gateway.open_client(who, "modern", version="2026-07-28", capabilities={})
            for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
                answer = await gateway.answer(client, method, {}, ClientExchange(client, {}, Nobody()))
                assert orjson.loads(answer)["cacheScope"] == scope


LESS = ProfileSettings(toolsets=())


class Nobody:
    def push(self, message: bytes) -> None:
        raise ConnectionError
