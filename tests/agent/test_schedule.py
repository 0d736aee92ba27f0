"""Unattended turns: what they need, what they may not, and what they say afterwards."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.agent.talk import issues, weather
from tests.fakes.scripted_model import Refuse, Say, ScriptedModel, Step, call, search, through_bridge
from typer.testing import CliRunner

from toolcrib.agent.host import Host
from toolcrib.agent.schedule import RunRecord, run_task
from toolcrib.cli.app import build_app
from toolcrib.settings import AgentSettings, Settings, ToolSearchSettings, ToolsSettings


async def run(script: list[Step], workdir: Path, **options: object) -> tuple[RunRecord, ScriptedModel]:
    with ScriptedModel(script, window=32_000) as endpoint:
        settings = Settings(
            tools=ToolsSettings(tool_search=ToolSearchSettings(enabled="on")),
            agent=AgentSettings(model="scripted", endpoint=endpoint.openai_url, workdir=str(workdir)),
        )
        ticks = iter(range(1_000))
        record = await run_task(
            "Do the nightly work.", settings, [issues(), weather()], clock=lambda: float(next(ticks)), **options
        )
    return record, endpoint


@pytest.mark.requirement("X28", "S19")
async def test_a_run_with_a_narrow_scope_says_what_really_happened(tmp_path: Path) -> None:
    script: list[Step] = [
        search("issues"),
        through_bridge("tracker__create_issue", title="Nightly"),
        through_bridge("weather__forecast", city="Bern"),
        Say("Done."),
    ]
    record, endpoint = await run(
        script, tmp_path, enabled_toolsets=["tracker"], required_tools=["tracker__create_issue", "read_file"]
    )
    assert record.succeeded
    assert record.text == "Done."
    calls = [(entry["tool"], entry["outcome"], entry.get("code")) for entry in record.calls]
    assert calls == [
        ("tracker__create_issue", "ok", None),
        ("weather__forecast", "refused", "tool_not_available"),
    ]
    assert json.loads(endpoint.requests[1].results[0])["total_available"] == 3
    assert record.account and record.account["searches"] == 1
    assert json.loads(json.dumps(record.as_json()))["outcome"] == "completed"


@pytest.mark.requirement("S22", "X28")
async def test_a_missing_required_tool_fails_before_anything_is_asked_of_the_endpoint(tmp_path: Path) -> None:
    record, endpoint = await run([Say("Never.")], tmp_path, required_tools=["deploy", "read_file"])
    assert record.outcome == "required_tools_missing"
    assert "`deploy`" in str(record.reason)
    assert "read_file" not in str(record.reason)
    assert endpoint.requests == []


@pytest.mark.requirement("S22", "S19")
async def test_a_required_tool_outside_the_scope_is_missing(tmp_path: Path) -> None:
    record, endpoint = await run(
        [Say("Never.")], tmp_path, enabled_toolsets=["tracker"], required_tools=["weather__forecast"]
    )
    assert record.outcome == "required_tools_missing"
    assert endpoint.requests == []


@pytest.mark.requirement("X28", "X14")
async def test_an_approval_that_nobody_can_give_is_refused_and_makes_the_run_a_failed_one(tmp_path: Path) -> None:
    script: list[Step] = [call("terminal", {"command": "touch ran"}), Say("All is well!")]
    record, _ = await run(script, tmp_path)
    assert record.outcome == "refused"
    assert not record.succeeded
    assert "terminal" in str(record.reason)
    assert not (tmp_path / "ran").exists()


@pytest.mark.requirement("X28")
async def test_clarify_says_that_nobody_is_there(tmp_path: Path) -> None:
    record, endpoint = await run([call("clarify", {"question": "Which?"}), Say("I chose.")], tmp_path)
    assert "Nobody can be asked" in endpoint.requests[-1].results[0]
    assert record.outcome == "completed"


@pytest.mark.requirement("X28")
async def test_an_endpoint_that_fails_makes_a_failed_run(tmp_path: Path) -> None:
    record, _ = await run([Refuse(401, "wrong key")], tmp_path)
    assert (record.outcome, record.succeeded) == ("model_failed", False)
    assert "wrong key" in str(record.reason)


@pytest.mark.requirement("X28")
@pytest.mark.parametrize(("step", "outcome"), [(Say("The answer."), "completed"), (Refuse(401, "no"), "model_failed")])
async def test_a_signal_while_a_finished_run_closes_takes_no_answer_back(
    step: Step, outcome: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(host: Host) -> None:
        close = host.model.close

        async def close_and_be_ended() -> None:
            await close()
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)

        monkeypatch.setattr(host.model, "close", close_and_be_ended)

    record, _ = await run([step], tmp_path, opened=opened, ended=lambda: "SIGTERM")
    assert (record.outcome, record.text) == (outcome, "The answer." if outcome == "completed" else "")


CONFIG = """
tools: {{tool_search: {{enabled: on}}}}
python:
  text: {{module: textwrap, include: [shorten, dedent]}}
agent: {{model: scripted, endpoint: "{endpoint}", workdir: "{workdir}", context: 32000}}
"""


def write_files(folder: Path, endpoint: str) -> list[str]:
    (folder / "config.yaml").write_text(CONFIG.format(endpoint=endpoint, workdir=folder), encoding="utf-8")
    (folder / "task.md").write_text("Shorten the text.", encoding="utf-8")
    return ["run", "--task", str(folder / "task.md"), "--config", str(folder / "config.yaml")]


@pytest.mark.requirement("X28", "S22")
def test_the_command_fails_with_one_when_a_required_tool_is_missing_and_writes_the_record(tmp_path: Path) -> None:
    with ScriptedModel([Say("Never.")]) as endpoint:
        arguments = write_files(tmp_path, endpoint.openai_url)
        record = tmp_path / "record.json"
        result = CliRunner().invoke(build_app(), [*arguments, "--require", "deploy", "--record", str(record)])
        assert result.exit_code == 1
        assert "required_tools_missing" in result.stderr
        assert json.loads(record.read_text(encoding="utf-8"))["outcome"] == "required_tools_missing"
        assert endpoint.requests == []


@pytest.mark.requirement("X28")
def test_the_command_runs_a_task_and_shows_the_feed(tmp_path: Path) -> None:
    script = [search("shorten a text"), through_bridge("text__shorten", text="a b c", width=3), Say("Short now.")]
    with ScriptedModel(script) as endpoint:
        arguments = write_files(tmp_path, endpoint.openai_url)
        result = CliRunner().invoke(build_app(), [*arguments, "--enabled-toolsets", "text", "--require", "shorten"])
        assert result.exit_code == 0, result.output
        assert "text__shorten [text]" in result.stdout
        assert "found by tool_search: “shorten a text”" in result.stdout
        assert "Short now." in result.stdout


@pytest.mark.requirement("X28")
def test_a_conversation_in_the_terminal_shows_words_feed_and_account(tmp_path: Path) -> None:
    script = [search("shorten a text"), through_bridge("text__shorten", text="a b c", width=3), Say("Short now.")]
    with ScriptedModel(script) as endpoint:
        _, _, _, _, config = write_files(tmp_path, endpoint.openai_url)
        result = CliRunner().invoke(build_app(), ["chat", "--config", config], input="Shorten it.\n/quit\n")
        assert result.exit_code == 0, result.output
        assert "Short now." in result.stdout
        assert "text__shorten [text]" in result.stdout
        assert "all attached:" in result.stdout


@pytest.mark.requirement("X28", "X14")
def test_a_piped_line_is_never_taken_for_an_approval(tmp_path: Path) -> None:
    script = [call("terminal", {"command": "touch ran"}), Say("It was refused.")]
    with ScriptedModel(script) as endpoint:
        _, _, _, _, config = write_files(tmp_path, endpoint.openai_url)
        result = CliRunner().invoke(build_app(), ["chat", "--config", config], input="Do it.\ny\n")
        assert "approval_required" in result.stdout
        assert not (tmp_path / "ran").exists()


def test_a_task_that_cannot_be_read_is_wrong_use(tmp_path: Path) -> None:
    from toolcrib.errors import ConfigError

    result = CliRunner().invoke(build_app(), ["run", "--task", str(tmp_path / "none")])
    assert isinstance(result.exception, ConfigError)


def test_a_record_that_cannot_be_written_is_told_before_anything_runs(tmp_path: Path) -> None:
    from toolcrib.errors import ConfigError

    with ScriptedModel([Say("Never.")]) as endpoint:
        arguments = write_files(tmp_path, endpoint.openai_url)
        for record, told in ((tmp_path / "none" / "r.json", "no directory"), (tmp_path, "is a directory")):
            result = CliRunner().invoke(build_app(), [*arguments, "--record", str(record)])
            assert isinstance(result.exception, ConfigError)
            assert told in str(result.exception)
        assert endpoint.requests == []


def test_a_piped_line_that_is_no_text_is_left_out_and_told(tmp_path: Path) -> None:
    with ScriptedModel([Say("Hello.")]) as endpoint:
        _, _, _, _, config = write_files(tmp_path, endpoint.openai_url)
        result = CliRunner().invoke(build_app(), ["chat", "--config", config], input=b"caf\xe9\nHi.\n")
        assert result.exit_code == 0, result.output
        assert "was left out" in result.stdout
        (request,) = endpoint.requests
        assert request.messages[-1]["content"] == "Hi."
