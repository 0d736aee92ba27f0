"""Vectors that are made in the background: who waits, what is kept, and what a failure does."""

import gc
import logging
import threading
import time
from pathlib import Path
from weakref import ref

import numpy as np
import pytest

from toolcrib.errors import ModelUnavailable
from toolcrib.limits import FILL_SAVE_AT_ONCE
from toolcrib.retrieval.filling import FillState, Reader, VectorFill
from toolcrib.retrieval.vector_file import VectorFile
from toolcrib.retrieval.vectors import unit, whole

SIZE = 64
TEXTS = [f"tool {number}" for number in range(40)]


class FakeReader:
    """Counts what it was asked; `gate`, if given, holds texts with `held` in them back until it is set."""

    def __init__(self, gate: threading.Event | None = None, held: str = "") -> None:
        self.texts: list[str] = []
        self._gate = gate
        self._held = held

    def read(self, text: str) -> bytes:
        if self._gate is not None and self._held in text:
            assert self._gate.wait(60)
        self.texts.append(text)
        return np.random.default_rng(len(text)).bytes(SIZE)


@pytest.fixture
def file(tmp_path: Path) -> VectorFile:
    return VectorFile(tmp_path / "some.vectors", size=SIZE)


def test_asking_does_not_wait_and_the_vectors_come():
    gate = threading.Event()
    fill = VectorFill(load=lambda: FakeReader(gate))
    digests = fill.want(TEXTS)
    assert fill.record(digests[0]) is None
    gate.set()
    state = fill.wait(60)
    assert (state.done, state.wanted, state.settled, state.failure) == (40, 40, True, None)
    assert all(fill.record(digest) is not None for digest in digests)


def test_progress_is_told_and_only_grows():
    fill = VectorFill(load=FakeReader)
    fill.want(TEXTS)
    heard: list[FillState] = []
    fill.wait(60, heard.append)
    assert [state.done for state in heard] == sorted(state.done for state in heard)
    assert heard[-1].done == 40


def test_waiting_ends_when_its_time_is_over():
    gate = threading.Event()
    fill = VectorFill(load=lambda: FakeReader(gate))
    fill.want(TEXTS)
    assert not fill.wait(0.05).settled
    gate.set()
    assert fill.wait(60).settled


def test_a_text_is_read_once_however_often_it_is_wanted(file: VectorFile):
    reader = FakeReader()
    fill = VectorFill(load=lambda: reader, file=file)
    fill.want([*TEXTS, *TEXTS])
    fill.wait(60)
    fill.want(TEXTS)
    fill.wait(60)
    assert sorted(reader.texts) == sorted(TEXTS)


def test_what_was_made_is_there_at_the_next_start(file: VectorFile):
    first = VectorFill(load=FakeReader, file=file)
    digests = first.want(TEXTS)
    first.wait(60)
    first.close()
    reader = FakeReader()
    second = VectorFill(load=lambda: reader, file=file)
    second.want([*TEXTS, "one more"])
    second.wait(60)
    assert reader.texts == ["one more"]
    assert second.record(digests[0]) == first.record(digests[0])


def test_closing_ends_the_work_and_keeps_what_was_made(file: VectorFile):
    started, gate = threading.Event(), threading.Event()

    class Slow(FakeReader):
        def read(self, text: str) -> bytes:
            started.set()
            assert gate.wait(60)
            return super().read(text)

    fill = VectorFill(load=Slow, file=file)
    fill.want(TEXTS)
    assert started.wait(60)
    closing, working = threading.Thread(target=fill.close), fill._thread
    closing.start()
    while not fill._stopping:
        time.sleep(0.001)
    gate.set()
    closing.join()
    assert working is not None
    working.join()
    assert 1 <= len(file.read()) < 40


def test_a_file_that_cannot_be_written_is_reported_and_search_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / "taken").write_text("a file where a directory should be")
    fill = VectorFill(load=FakeReader, file=VectorFile(tmp_path / "taken" / "x", size=SIZE))
    with caplog.at_level(logging.WARNING, logger="toolcrib"):
        digests = fill.want(TEXTS)
        fill.wait(60)
        fill.close()
    assert fill.record(digests[0]) is not None
    assert "cannot be kept" in caplog.text


def test_a_model_that_cannot_be_read_is_kept_as_the_reason_and_reported_once(caplog: pytest.LogCaptureFixture):
    def load() -> Reader:
        raise ModelUnavailable("the weights are damaged")

    fill = VectorFill(load=load)
    with caplog.at_level(logging.WARNING, logger="toolcrib"):
        fill.want(TEXTS)
        state = fill.wait(60)
        fill.want(["more"])
    assert state.failure == "the weights are damaged"
    assert caplog.text.count("the weights are damaged") == 1


def test_a_reader_that_breaks_down_is_a_failure_and_no_exception(caplog: pytest.LogCaptureFixture):
    class Broken(FakeReader):
        def read(self, text: str) -> bytes:
            raise RuntimeError("secret of the reader")

    with caplog.at_level(logging.WARNING, logger="toolcrib"):
        fill = VectorFill(load=Broken)
        digests = fill.want(TEXTS)
        fill.wait(60)
    assert fill.record(digests[0]) is None
    assert fill.state.failure == "the reader failed (RuntimeError)"
    assert "secret" not in caplog.text


def test_vectors_are_bounded_and_the_oldest_go():
    fill = VectorFill(load=FakeReader, most=10)
    first = fill.want(TEXTS[:10])
    fill.wait(60)
    last = fill.want(TEXTS[10:15])
    fill.wait(60)
    assert fill.record(first[0]) is None
    assert fill.record(last[-1]) is not None


def test_whole_numbers_keep_the_direction():
    vector = unit(np.random.default_rng(1).normal(size=SIZE).astype(np.float32))
    back = unit(whole(vector))
    assert float(back @ vector) > 0.9999
    assert not whole(np.zeros(4, dtype=np.float32)).any()


def test_a_few_vectors_are_made_by_whoever_asks_and_more_in_the_background(file: VectorFile):
    gate, makers = threading.Event(), set[int]()

    class Watched(FakeReader):
        def read(self, text: str) -> bytes:
            makers.add(threading.get_ident())
            return super().read(text)

    fill = VectorFill(load=lambda: Watched(gate, held="tool 3"), file=file, at_once=3)
    few = fill.want(TEXTS[:3])
    assert all(fill.record(digest) is not None for digest in few)
    assert makers == {threading.get_ident()}
    many = fill.want(TEXTS)
    assert fill.record(many[3]) is None
    gate.set()
    state = fill.wait(60)
    assert (state.done, state.wanted) == (37, 37)
    assert len(makers) == 2
    fill.close()
    assert len(file.read()) == 40


def test_what_the_file_holds_is_not_made_again_by_whoever_asks(file: VectorFile):
    first = VectorFill(load=FakeReader, file=file, at_once=100)
    digests = first.want(TEXTS)
    first.close()
    reader = FakeReader()
    second = VectorFill(load=lambda: reader, file=file, at_once=100)
    assert second.want(TEXTS) == digests
    assert reader.texts == []
    assert second.record(digests[5]) == first.record(digests[5])


def test_a_failure_while_somebody_asks_is_kept_reported_once_and_not_raised(caplog: pytest.LogCaptureFixture):
    class Broken(FakeReader):
        def read(self, text: str) -> bytes:
            raise ValueError("no")

    fill = VectorFill(load=Broken, at_once=100, what="the sentence reader")
    with caplog.at_level(logging.WARNING, logger="toolcrib"):
        digests = fill.want(TEXTS)
        fill.want(TEXTS[:2])
    assert fill.record(digests[0]) is None
    assert fill.state.failure == "the sentence reader failed (ValueError)"
    assert len(caplog.records) == 1


def test_where_no_thread_is_to_be_had_nobody_waits_for_one_and_what_is_made_at_once_is_kept(
    file: VectorFile, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    many, few = (VectorFill(load=FakeReader, file=file, at_once=number, what="the reader") for number in (0, 100))
    with caplog.at_level(logging.WARNING, logger="toolcrib"):
        many.want(TEXTS)
        many.want(TEXTS)
    assert many.wait(float("inf")).failure == "the reader got no thread to work in"
    assert len(caplog.records) == 1
    for start in range(0, 2 * FILL_SAVE_AT_ONCE, 16):  # so many that a thread is wanted to write them
        few.want([f"another {number}" for number in range(start, start + 16)])
    assert few.state.failure is None
    few.close()
    assert len(file.read()) == 2 * FILL_SAVE_AT_ONCE


def test_nobody_is_kept_alive_for_its_vectors_and_a_few_are_written_when_it_goes(file: VectorFile):
    few, many = (VectorFill(load=FakeReader, file=file, at_once=number) for number in (100, 0))
    few.want(TEXTS[:5])
    assert file.read() == {}
    many.want(TEXTS[5:])
    many.wait(60)
    while (thread := many._thread) is not None:
        thread.join()
    left = ref(few), ref(many)
    del few, many, thread
    gc.collect()
    assert [fill() for fill in left] == [None, None]
    assert len(file.read()) == 40
