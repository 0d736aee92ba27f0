"""Vectors between two starts: bounded, and never worse than having none."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolcrib.retrieval.vector_file import VectorFile, cache_directory


def record(number: int) -> tuple[bytes, bytes]:
    return number.to_bytes(16, "big"), bytes([number % 256] * 8)


@pytest.fixture
def file(tmp_path: Path) -> VectorFile:
    return VectorFile(tmp_path / "deep" / "some.vectors", size=8, most=5)


def test_what_was_written_is_read(file: VectorFile):
    file.write(dict([record(1), record(2)]))
    assert file.read() == dict([record(1), record(2)])


def test_there_is_nothing_before_the_first_write(file: VectorFile):
    assert file.read() == {}


def test_a_second_process_adds_to_what_the_first_wrote(file: VectorFile):
    file.write(dict([record(1)]))
    VectorFile(file.path, size=8, most=5).write(dict([record(2)]))
    assert list(file.read()) == [record(1)[0], record(2)[0]]


def test_the_oldest_go_when_the_file_is_full(file: VectorFile):
    file.write(dict(map(record, range(5))))
    file.write(dict([record(0), record(7)]))
    assert list(file.read()) == [record(number)[0] for number in (2, 3, 4, 0, 7)]
    assert file.path.stat().st_size == 5 * (16 + 8 + 4)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(place=st.integers(0, 83), bits=st.integers(1, 255), cut=st.integers(0, 84))
def test_a_damaged_record_is_left_out_and_the_others_stay(file: VectorFile, place: int, bits: int, cut: int):
    whole = dict(map(record, range(3)))
    file.path.unlink(missing_ok=True)
    file.write(whole)
    content = bytearray(file.path.read_bytes())
    content[place] ^= bits
    file.path.write_bytes(content[:cut])
    found = file.read()
    assert found.items() <= whole.items()
    assert len(found) >= cut // 28 - 1


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_or_is_interrupted_leaves_the_old_file_and_no_rest(
    file: VectorFile, monkeypatch: pytest.MonkeyPatch, failure: BaseException
):
    file.write(dict([record(1)]))

    def refuse(self: Path, target: Path) -> None:
        raise failure

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(type(failure)):
        file.write(dict([record(2)]))
    monkeypatch.undo()
    assert file.read() == dict([record(1)])
    assert list(file.path.parent.iterdir()) == [file.path]


def test_the_file_is_for_its_owner_alone(file: VectorFile):
    file.write(dict([record(1)]))
    assert file.path.stat().st_mode & 0o077 == 0


def test_the_cache_is_where_the_desktop_convention_says(tmp_path: Path):
    assert cache_directory({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "toolcrib"
    assert cache_directory({}).parts[-2:] == (".cache", "toolcrib")
