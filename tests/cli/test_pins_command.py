"""`toolcrib pins` as a user meets it."""

import json
import sys
from pathlib import Path

import pytest
from tests.cli.terminal import toolcrib
from tests.factories import TEXT, definition

MAIL = [
    {"server": "mail", **definition("send", "Sends a mail.", to=TEXT)},
    {"server": "mail", **definition("read", "Reads mails.")},
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    offer(tmp_path, *MAIL)
    return tmp_path


def offer(place: Path, *rows: object) -> None:
    (place / "tools.jsonl").write_text("\n".join(json.dumps(row) for row in rows))


def pins(place: Path, *arguments: str):
    return toolcrib("pins", *arguments, "--tools", "tools.jsonl", cwd=place)


def test_a_first_approval_writes_the_lock_and_leaves_no_difference(place: Path) -> None:
    before = pins(place, "diff")
    assert before.returncode == 1 and "does not exist yet" in before.stdout
    assert pins(place, "approve", "--all").returncode == 0
    after = pins(place, "diff", "--json")
    assert after.returncode == 0
    assert json.loads(after.stdout) == {"lock": "toolcrib.lock", "exists": True, "problems": [], "differences": []}


def test_a_change_is_shown_with_its_part_and_its_text_and_approved_by_name(place: Path) -> None:
    pins(place, "approve", "--all")
    offer(place, {**MAIL[0], "description": "Sends a\u202e mail."}, {**MAIL[1], "description": "Reads."})
    shown = pins(place, "diff")
    assert shown.returncode == 1
    assert "~ mail__send: changed (description)" in shown.stdout
    assert "‹U+202E›" in shown.stdout and "\u202e" not in shown.stdout
    assert pins(place, "approve", "mail__read").returncode == 0
    (left,) = json.loads(pins(place, "diff", "--json").stdout)["differences"]
    assert (left["name"], left["state"], left["parts"]) == ("mail__send", "changed", ["description"])


def test_all_leaves_what_has_hard_findings_to_a_person(place: Path) -> None:
    offer(place, *MAIL, {"server": "calc", **definition("add", "Ad\u200bds.")})
    answer = json.loads(pins(place, "approve", "--all", "--json").stdout)
    assert [row["name"] for row in answer["approved"]] == ["mail__read", "mail__send"]
    assert [row["name"] for row in answer["left"]] == ["calc__add"]
    listed = json.loads(pins(place, "list", "--json").stdout)["pins"]
    (row,) = [row for row in listed if row["name"] == "calc__add"]
    assert row["state"] == "new" and "U+200B" in row["held_back"]
    assert [finding["rule"] for finding in row["findings"]] == ["hidden.zero_width"]
    assert pins(place, "approve", "mcp-calc").returncode == 0
    (row,) = [row for row in json.loads(pins(place, "list", "--json").stdout)["pins"] if row["name"] == "calc__add"]
    assert row["state"] == "unchanged" and row["held_back"] is None


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["approve"], "or give --all"),
        (["approve", "--all", "mail__send"], "or give --all"),
        (["approve", "mail__sendd"], "did you mean `mail__send`?"),
    ],
)
def test_wrong_use_is_one_sentence(place: Path, arguments: list[str], says: str) -> None:
    answer = pins(place, *arguments)
    assert answer.returncode == 2
    assert says in answer.stderr and "Traceback" not in answer.stderr
    assert not (place / "toolcrib.lock").exists()


def test_a_broken_lock_is_one_sentence_and_stays_as_it_is(place: Path) -> None:
    (place / "toolcrib.lock").write_text("{")
    answer = pins(place, "approve", "--all")
    assert answer.returncode == 2 and "no valid JSON" in answer.stderr
    assert (place / "toolcrib.lock").read_text() == "{"


def test_the_lock_lies_beside_the_configuration(place: Path) -> None:
    inner = place / "conf"
    inner.mkdir()
    (inner / "toolcrib.yaml").write_text("pins: off\npython: {maths: {module: math}}\n")
    assert toolcrib("pins", "approve", "--all", "--config", "conf/toolcrib.yaml", cwd=place).returncode == 0
    assert (inner / "toolcrib.lock").exists()


def test_every_command_of_the_group_has_an_example() -> None:
    for command in ("list", "diff", "approve"):
        assert "toolcrib pins " + command in toolcrib("pins", command, "--help").stdout


BAD_UPSTREAM = Path(__file__).parents[1] / "fakes" / "bad_upstream.py"


def serve(place: Path, *arguments: str, **servers: str) -> None:
    """A configuration with one bad upstream for each server, by its mode."""
    entries = {
        name: {"command": sys.executable, "args": [str(BAD_UPSTREAM), "--mode", mode, *arguments]}
        for name, mode in servers.items()
    }
    (place / "toolcrib.yaml").write_text(json.dumps({"mcpServers": entries, "pins": "enforce"}))


def test_servers_are_started_asked_and_ended_and_their_launch_is_pinned(tmp_path: Path) -> None:
    serve(tmp_path, good="ok", dead="exit_on_init")
    answer = json.loads(toolcrib("pins", "approve", "--all", "--json", cwd=tmp_path).stdout)
    assert [(row["kind"], row["name"]) for row in answer["approved"]] == [
        ("launch", "mcp-dead"),
        ("launch", "mcp-good"),
        ("tool", "good__echo"),
    ]
    same = toolcrib("pins", "diff", cwd=tmp_path)
    assert same.returncode == 0 and "mcp-dead could not be asked" in same.stdout


@pytest.mark.requirement("X21")
def test_approving_for_one_of_two_configurations_undoes_nothing_for_the_other(place: Path) -> None:
    for name in ("cursor", "zed"):
        tools = {"command": sys.executable, "args": [str(BAD_UPSTREAM), "--mode", "ok"]}
        (place / f"{name}.json").write_text(json.dumps({"mcpServers": {name: tools}}))
        assert toolcrib("pins", "approve", "--all", "--config", f"{name}.json", cwd=place).returncode == 0
    for name in ("cursor", "zed"):
        left = toolcrib("pins", "diff", "--config", f"{name}.json", "--json", cwd=place)
        assert json.loads(left.stdout) == {"lock": f"{name}.lock", "exists": True, "problems": [], "differences": []}


@pytest.mark.requirement("C6")
def test_another_command_line_holds_back_what_was_approved(tmp_path: Path) -> None:
    serve(tmp_path, good="ok")
    assert toolcrib("pins", "approve", "mcp-good", cwd=tmp_path).returncode == 0
    serve(tmp_path, "--amount", "1", good="ok")
    rows = json.loads(toolcrib("pins", "list", "--json", cwd=tmp_path).stdout)["pins"]
    assert [(row["kind"], row["name"], row["state"]) for row in rows] == [
        ("launch", "mcp-good", "changed"),
        ("tool", "good__echo", "unchanged"),
    ]
    assert "launch configuration" in rows[1]["held_back"]


@pytest.mark.requirement("X21")
def test_what_was_approved_and_cannot_be_asked_for_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolcrib.cli.cribs.AUDIT_START_S", 6)
    script = f'exec "{sys.executable}" "{BAD_UPSTREAM}" --mode "$(cat "{tmp_path}/mode")"'
    (tmp_path / "toolcrib.yaml").write_text(
        json.dumps({"mcpServers": {"one": {"command": "sh", "args": ["-c", script]}}})
    )
    (tmp_path / "mode").write_text("ok")
    assert toolcrib("pins", "approve", "--all", cwd=tmp_path).returncode == 0
    for mode, reason in {"exit_on_init": "it exited", "hang_init": "it did not answer within 6 seconds"}.items():
        (tmp_path / "mode").write_text(mode)
        diff = toolcrib("pins", "diff", cwd=tmp_path)
        assert diff.returncode == 1
        assert f"mcp-one could not be asked: {reason}" in diff.stdout
        assert "1 unchanged, 1 not asked" in diff.stdout
