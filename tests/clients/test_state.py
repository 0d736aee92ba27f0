"""What a check-up says of the clients here."""

from pathlib import Path

from tests.clients.samples import SAMPLES

from toolcrib.clients import FAMILIES, require_family
from toolcrib.clients.base import Surroundings
from toolcrib.clients.discovery import discover
from toolcrib.clients.install import Launcher, apply_install, plan_install
from toolcrib.clients.manifest import backup_path, manifest_path
from toolcrib.clients.state import client_states
from toolcrib.clients.uninstall import apply_uninstall, find_installed, plan_uninstall


def put(home: Path, index: int) -> Path:
    path = home / SAMPLES[index].path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(SAMPLES[index].text.encode())
    return path


def install(home: Path, client: str) -> None:
    around = Surroundings(home=home, platform="linux", cwd=home)
    family = require_family(client)
    launcher = Launcher(command="/bin/toolcrib", directory=home / "gateway")
    apply_install(plan_install(family, discover([family], around).configs, launcher=launcher))


def states(home: Path) -> dict[str, str]:
    around = Surroundings(home=home, platform="linux", cwd=home)
    return {item.client: item.state for item in client_states(FAMILIES, around)}


def test_each_client_is_direct_installed_changed_or_without_its_backup(tmp_path: Path) -> None:
    cursor, zed, gemini = (put(tmp_path, index) for index in (2, 7, 6))
    assert states(tmp_path) == {"cursor": "direct", "gemini": "direct", "zed": "direct"}
    for client in ("cursor", "zed", "gemini"):
        install(tmp_path, client)
    zed.write_bytes(zed.read_bytes() + b"\n")
    backup_path(gemini).unlink()
    assert states(tmp_path) == {"cursor": "installed", "zed": "changed since", "gemini": "backup lost"}
    manifest_path(cursor).write_text("{}", encoding="utf-8")
    assert states(tmp_path)["cursor"] == "unreadable"


def test_a_file_that_cannot_be_read_is_part_of_the_answer(tmp_path: Path) -> None:
    put(tmp_path, 2).write_text("{", encoding="utf-8")
    around = Surroundings(home=tmp_path, platform="linux", cwd=tmp_path)
    (state,) = client_states(FAMILIES, around)
    assert state.state == "unreadable" and "mcp.json:1: " in str(state.detail) and not state.healthy


def test_an_interrupted_installation_can_be_repeated_or_taken_back(tmp_path: Path) -> None:
    path = put(tmp_path, 2)
    original = path.read_bytes()
    around = Surroundings(home=tmp_path, platform="linux", cwd=tmp_path)
    family = require_family("cursor")
    install(tmp_path, "cursor")
    path.write_bytes(original)  # as if the last write had never happened
    ((found, manifest),) = find_installed(family, around)
    plan = plan_uninstall(family, found, manifest)
    assert plan.way == "already as before"
    install(tmp_path, "cursor")
    ((found, manifest),) = find_installed(family, around)
    apply_uninstall(plan_uninstall(family, found, manifest))
    assert path.read_bytes() == original
    assert sorted(item.name for item in path.parent.iterdir()) == ["mcp.json"]
    assert not list((tmp_path / "gateway").iterdir())


def test_a_byte_order_mark_stays(tmp_path: Path) -> None:
    path = put(tmp_path, 6)
    original = b"\xef\xbb\xbf" + path.read_bytes()
    path.write_bytes(original)
    install(tmp_path, "gemini")
    assert path.read_bytes().startswith(b"\xef\xbb\xbf{")
    around = Surroundings(home=tmp_path, platform="linux", cwd=tmp_path)
    family = require_family("gemini")
    ((found, manifest),) = find_installed(family, around)
    apply_uninstall(plan_uninstall(family, found, manifest))
    assert path.read_bytes() == original
