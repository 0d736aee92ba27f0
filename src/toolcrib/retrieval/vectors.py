"""What the modules with vectors share: bringing them to length one or into whole numbers, and reading files of them."""

import zipfile
import zlib
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from toolcrib.errors import ModelUnavailable

Codes: TypeAlias = NDArray[np.int8]
Floats: TypeAlias = NDArray[np.float32]

MODEL_DIRECTORY = Path(__file__).parent / "model"


def unit(vectors: Codes | Floats) -> Floats:
    """The vectors brought to length one; a zero vector stays zero."""
    floats = vectors.astype(np.float32)
    lengths = np.sqrt(np.einsum("...i,...i->...", floats, floats))[..., None]
    return np.divide(floats, lengths, out=np.zeros_like(floats), where=lengths > 0)


def whole(vectors: Floats) -> Codes:
    """The vectors in whole numbers of no fixed scale; `unit` brings them back to length one."""
    largest = np.abs(vectors).max(axis=-1, keepdims=True, initial=0.0).astype(np.float64)
    scales = np.divide(127.0, largest, out=np.zeros_like(largest), where=largest > 0)
    return np.rint(vectors * scales.astype(np.float32)).astype(np.int8)


def read_arrays(path: Path, *, only: str | None = None) -> dict[str, NDArray[np.generic]]:
    """The arrays of a file, or one of them.

    Raises:
        ModelUnavailable: it is missing or damaged.
    """
    try:
        with path.open("rb") as file:
            # Check sums first: parsing a damaged header can end in any error. Of one array they are checked anyway.
            with zipfile.ZipFile(file) as archive:
                damaged = archive.testzip() if only is None else None
            if damaged is not None:
                raise ModelUnavailable(f"the embedding file {path.name} is damaged at {damaged}")
            file.seek(0)
            with np.load(file, allow_pickle=False) as arrays:
                return {name: arrays[name] for name in arrays.files if only in (None, name)}
    except (OSError, ValueError, KeyError, EOFError, RuntimeError, zlib.error, zipfile.BadZipFile) as error:
        raise ModelUnavailable(f"the embedding file {path.name} cannot be read: {error}") from error
