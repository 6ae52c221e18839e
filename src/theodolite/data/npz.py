"""Inputs and labels from ``FILE.npz``, which is checked and never trusted."""

import zipfile
from pathlib import Path

import numpy as np

from theodolite.core import DataError, error_text

_INPUTS = ("inputs", "x", "X", "images", "data", "x_train", "input_ids")
_TARGETS = ("labels", "y", "Y", "targets", "label", "y_train")
_SAVE = "numpy.savez(path, inputs=…, labels=…)"


def read_npz(path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the inputs of a file, and its labels if it has any, as real numbers.

    Inputs that are bytes stay bytes, as images are; other whole numbers become int64.

    Raises:
        DataError: The file cannot be read, or holds something else.
    """
    try:
        with path.open("rb") as file:  # a path would hide why it cannot be read
            if not zipfile.is_zipfile(file):
                raise DataError(
                    f"the data {path} are no archive of arrays: pass a file of {_SAVE}"
                )
        with np.load(path, allow_pickle=False) as arrays:
            entries = {name: arrays[name] for name in arrays.files}
    except DataError:
        raise
    except Exception as error:  # a damaged archive may raise anything
        raise DataError(
            f"the data {path} cannot be read ({error_text(error)}): pass a file of "
            f"{_SAVE}"
        ) from error
    # An entry that is no array was read as bytes.
    stored = {name: e for name, e in entries.items() if isinstance(e, np.ndarray)}
    inputs = next((stored[n] for n in _INPUTS if n in stored), None)
    targets = next((stored[n] for n in _TARGETS if n in stored), None)
    if inputs is None:
        raise DataError(
            f"the data {path} have the arrays {', '.join(stored) or 'none'} and no "
            f"real numbers named 'inputs': save them with {_SAVE}"
        )
    inputs = _numbers(inputs, "inputs", path)
    if targets is not None:
        targets = _numbers(targets, "labels", path)
        if len(targets) != len(inputs):
            raise DataError(
                f"the data {path} have {len(inputs)} inputs and {len(targets)} labels: "
                "save as many of one as of the other"
            )
    return inputs, targets


def _numbers(array: np.ndarray, what: str, path: Path) -> np.ndarray:
    """Return real numbers in a dtype and byte order that torch accepts."""
    kind = array.dtype.kind
    if kind not in "fiub" or not array.ndim or not array.size:
        raise DataError(
            f"the data {path} have {what} of type {array.dtype} and shape "
            f"{array.shape}, and real numbers were wanted, a row per sample: save them "
            f"with {_SAVE}"
        )
    if kind == "f":
        native = array.dtype.newbyteorder("=")
        return array.astype(np.float64 if array.dtype.itemsize > 8 else native)
    if kind == "u" and array.dtype.itemsize == 8 and array.max() > np.iinfo("i8").max:
        raise DataError(
            f"the data {path} have {what} up to {array.max()}, which torch cannot "
            "hold: save them as int64"
        )
    plain = array.dtype == np.uint8 and what == "inputs"
    return array if plain else array.astype(np.int64)
