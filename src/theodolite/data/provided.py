"""Datasets that came from elsewhere in memory, for processes without the files."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from theodolite.core import DataError
from theodolite.data.dataset import Dataset
from theodolite.data.files import in_words

_PROVIDED: dict[tuple[str, str], Dataset] = {}


def provide(dataset: Dataset) -> None:
    """Let :func:`load` return this dataset in this process, in place of files.

    It is returned where neither a folder nor an option is given.
    """
    _PROVIDED[dataset.name, dataset.split] = dataset


def withdraw(name: str, split: str = "train") -> None:
    """Undo :func:`provide`."""
    _PROVIDED.pop((name, split), None)


def provided(name: str, split: str) -> Dataset | None:
    """Return what was provided under a name, if anything was."""
    return _PROVIDED.get((name, split))


def packed(dataset: Dataset) -> dict[str, Any]:
    """Return a dataset as plain arrays and text, with its checksum."""
    return {
        "name": dataset.name,
        "split": dataset.split,
        # Not memory-mapped: whoever receives it has no such file.
        "inputs": np.ascontiguousarray(np.asarray(dataset.inputs)),
        "labels": np.ascontiguousarray(np.asarray(dataset.labels)),
        "class_names": dataset.class_names,
        "origin": dataset.origin,
        "verified": dataset.verified,
        "checksum": dataset.checksum,
    }


def unpacked(parcel: Mapping[str, Any], checksum: str | None = None) -> Dataset:
    """Return the dataset of a parcel, or refuse one that was changed on its way.

    Args:
        parcel: What :func:`packed` returned.
        checksum: The checksum that is wanted; the parcel's own by default.

    Example:
        >>> from theodolite.data import load
        >>> unpacked(packed(load("digits"))).checksum == load("digits").checksum
        True
    """
    try:
        contents = dict(parcel)
        wanted = str(contents.pop("checksum"))
        dataset = Dataset(**contents)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"a parcel that is no dataset ({in_words(error)}): pass what packed() "
            "returned"
        ) from None
    for digest in {wanted, checksum or wanted}:
        if dataset.checksum != digest:
            raise DataError(
                f"{dataset.name} {dataset.split} arrived with the checksum "
                f"{dataset.checksum[:12]}…, wanted {digest[:12]}…: it was changed on "
                "its way; run again, or put the files on every node and set "
                "THEODOLITE_DATA there"
            )
    return dataset
