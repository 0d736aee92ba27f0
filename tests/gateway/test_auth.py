import os
from pathlib import Path

import pytest

from toolcrib.errors import ConfigError
from toolcrib.gateway.auth import Failures, TokenFile
from toolcrib.gateway.listening import is_loopback, parse_address


@pytest.mark.requirement("G4", "J4", "X19")
def test_a_token_is_shown_once_and_stored_as_a_hash_that_only_its_owner_can_read(tmp_path: Path):
    file = TokenFile(tmp_path / "deep" / "tokens.json")
    secret, entry = file.create("laptop", profile="default", days=1)
    assert len(secret) > 43
    assert secret not in file.path.read_text()
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert file.find(secret) == entry
    assert file.find(secret + "x") is None
    assert TokenFile(file.path).find(secret) == entry


@pytest.mark.requirement("G2", "A19")
def test_a_token_ends_when_it_expires_or_is_revoked(tmp_path: Path):
    now = 1_000_000.0
    file = TokenFile(tmp_path / "tokens.json", clock=lambda: now)
    short, _ = file.create("short", profile="default", days=1)
    long, _ = file.create("long", profile="default", days=None)
    now += 86_400
    assert file.find(short) is None
    assert file.find(long) is not None
    reader = TokenFile(file.path, clock=lambda: now)
    assert reader.find(long) is not None
    assert file.revoke("long")
    assert reader.find(long) is None
    assert not file.revoke("long")


@pytest.mark.requirement("A19")
def test_a_token_that_was_replaced_within_one_tick_of_the_clock_counts_no_more(tmp_path: Path):
    file = TokenFile(tmp_path / "tokens.json", clock=lambda: 1_000_000.0)
    old, _ = file.create("laptop", profile="default", days=1)
    reader = TokenFile(file.path, clock=lambda: 1_000_000.0)
    assert reader.find(old) is not None
    before = file.path.stat()
    # What a rotation leaves: a file of the same size, which a file system with coarse times gives the same time.
    with file.path.open() as kept:
        file.revoke("laptop")
        new, _ = file.create("laptop", profile="default", days=1)
        os.utime(file.path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert (file.path.stat().st_size, os.fstat(kept.fileno()).st_ino) == (before.st_size, before.st_ino)
        assert reader.find(old) is None
        assert reader.find(new) is not None


@pytest.mark.requirement("J4")
def test_a_file_that_others_can_read_is_refused(tmp_path: Path):
    file = TokenFile(tmp_path / "tokens.json")
    file.create("a", profile="default", days=1)
    file.path.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        TokenFile(file.path).read()


def test_a_name_is_used_once_and_nonsense_is_refused(tmp_path: Path):
    file = TokenFile(tmp_path / "tokens.json")
    file.create("a", profile="default", days=1)
    with pytest.raises(ConfigError, match="already"):
        file.create("a", profile="default", days=1)
    with pytest.raises(ConfigError):
        file.create(" ", profile="default", days=1)
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    broken.chmod(0o600)
    with pytest.raises(ConfigError, match="holds no tokens"):
        TokenFile(broken).read()


@pytest.mark.requirement("G9")
def test_ten_failures_in_a_minute_block_an_address_for_a_minute():
    now = 0.0
    failures = Failures(clock=lambda: now)
    for _ in range(10):
        assert not failures.is_blocked("a")
        failures.note("a")
    assert failures.is_blocked("a")
    assert not failures.is_blocked("b")
    now = 61.0
    assert not failures.is_blocked("a")


@pytest.mark.parametrize(("text", "parsed"), [("127.0.0.1:80", ("127.0.0.1", 80)), ("[::1]:5", ("::1", 5)),
    (":8765", ("127.0.0.1", 8765))])  # fmt: skip
def test_addresses_are_read(text: str, parsed: tuple[str, int]):
    assert parse_address(text) == parsed


@pytest.mark.parametrize("text", ["x", "127.0.0.1", "h:99999", "h:-1"])
def test_wrong_addresses_are_refused(text: str):
    with pytest.raises(ConfigError):
        parse_address(text)


@pytest.mark.parametrize(("host", "local"), [("127.0.0.1", True), ("::1", True), ("localhost", True),
    ("127.8.9.1", True), ("0.0.0.0", False), ("example.org", False), ("localhost.evil", False)])  # fmt: skip
def test_loopback_is_told_from_the_rest(host: str, local: bool):
    assert is_loopback(host) is local
