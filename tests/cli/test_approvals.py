"""`toolcrib approvals`."""

from pathlib import Path

from tests.cli.terminal import toolcrib
from tests.gateway.test_desk import asked

from toolcrib.gateway.desk import ApprovalDesk


def test_the_list_shows_what_waits_and_a_refusal_takes_it_off(home: Path) -> None:
    desk = ApprovalDesk()
    assert desk.directory.is_relative_to(home)
    assert "No call waits" in toolcrib("approvals", "list").stdout
    number = desk.ask(asked(repo="a")).id
    assert f"{number}  delete_repo" in toolcrib("approvals", "list").stdout
    without = toolcrib("approvals", "grant", number)
    assert (without.returncode, "give --yes" in without.stderr) == (2, True)
    assert toolcrib("approvals", "refuse", number).returncode == 0
    assert not desk.waiting()
