"""A labelled dataset: arrays, class names, and where they came from."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from theodolite.core import DataError, Numbers, as_integer, as_real


def one_hot(labels: Numbers, n_classes: int) -> np.ndarray:
    """Return float64 targets (N, n_classes) with one 1 in each row.

    Example:
        >>> one_hot(np.array([1, 0]), 3)
        array([[0., 1., 0.],
               [1., 0., 0.]])
    """
    labels = as_real("labels", labels, error=DataError)
    n_classes = as_integer("n_classes", n_classes, 1)
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise DataError(
            f"labels have shape {labels.shape} and type {labels.dtype}: pass one whole "
            "number per sample"
        )
    if labels.size and not 0 <= labels.min() <= labels.max() < n_classes:
        raise DataError(
            f"labels run from {labels.min()} to {labels.max()}, n_classes={n_classes} "
            f"allows 0 to {n_classes - 1}: pass more classes or other labels"
        )
    targets = np.zeros((len(labels), n_classes))
    targets[np.arange(len(labels)), labels] = 1.0
    return targets


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Dataset:
    """Inputs with one class label each; the arrays are read-only.

    Large sets are memory-mapped, so processes that load the same one share its
    pages. Copy before writing, and use ``torch.tensor`` rather than
    ``torch.from_numpy``, which warns about read-only arrays.

    Attributes:
        name: Registered name, such as ``"mnist"``.
        split: ``"train"`` or ``"test"``.
        inputs: uint8 images (N, H, W) or (N, H, W, C), or real arrays (N, …).
        labels: Class of each input, int64, from 0 to ``n_classes - 1``.
        class_names: Name of each class.
        origin: Where the data come from, in one sentence.
        verified: Whether the data were compared with a published checksum.
    """

    name: str
    split: str
    inputs: np.ndarray
    labels: np.ndarray
    class_names: tuple[str, ...]
    origin: str
    verified: bool = False

    def __post_init__(self) -> None:
        title = f"{self.name} {self.split}"
        labels = as_real(f"{title} labels", self.labels, error=DataError)
        inputs = as_real(f"{title} inputs", self.inputs, error=DataError)
        if isinstance(self.inputs, np.memmap):  # stays one, to say so
            inputs = self.inputs
        if labels.ndim != 1 or labels.dtype.kind not in "iu":
            raise DataError(
                f"{self.name} {self.split}: labels have shape {labels.shape} and type "
                f"{labels.dtype}; pass one whole number per sample"
            )
        if inputs.ndim < 2 or len(inputs) != len(labels):
            raise DataError(
                f"{self.name} {self.split}: inputs of shape {inputs.shape} do not "
                f"go with {len(labels)} labels; pass one input per label, at least 2-D"
            )
        if len(labels) == 0:
            raise DataError(f"{self.name} {self.split} is empty: pass samples")
        low, high = int(labels.min()), int(labels.max())
        if low < 0 or high >= self.n_classes:
            raise DataError(
                f"{self.name} {self.split}: labels run from {low} to {high}, wanted 0 "
                f"to {self.n_classes - 1}; check the labels or name more classes"
            )
        object.__setattr__(self, "inputs", _read_only(inputs))
        object.__setattr__(self, "labels", _read_only(labels.astype(np.int64)))

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        shape = "×".join(str(size) for size in self.inputs.shape)
        mark = "verified" if self.verified else "not verified"
        return (
            f"Dataset({self.name} {self.split}: {shape} {self.inputs.dtype}, "
            f"{self.n_classes} classes, {mark})"
        )

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @property
    def images(self) -> np.ndarray:
        """The inputs, if they are images; raises if they are not."""
        if self.inputs.ndim < 3:
            raise DataError(
                f"{self.name} has inputs of shape {self.inputs.shape}, not images: "
                "use inputs"
            )
        return self.inputs

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of the bytes of the inputs, then of the int64 labels, in C order."""
        digest = hashlib.sha256(np.ascontiguousarray(self.inputs).data)
        digest.update(np.ascontiguousarray(self.labels, dtype="<i8").data)
        return digest.hexdigest()

    def flat(self) -> np.ndarray:
        """Return float64 rows (N, d); uint8 pixels are divided by 255."""
        rows = self.inputs.reshape(len(self), -1).astype(np.float64)
        if self.inputs.dtype == np.uint8:
            rows /= 255.0
        return rows

    def one_hot(self) -> np.ndarray:
        """Return float64 targets (N, n_classes) with one 1 in each row."""
        return one_hot(self.labels, self.n_classes)

    def signs(self) -> np.ndarray:
        """Return float64 targets -1 and +1 for the first and second of two classes."""
        if self.n_classes != 2:
            raise DataError(
                f"{self.name} has {self.n_classes} classes and signs need 2: "
                "choose them with two_classes(dataset, a, b)"
            )
        return 2.0 * self.labels - 1.0

    def subset(self, indices: Sequence[int] | np.ndarray | slice) -> "Dataset":
        """Return the samples that indices, a mask or a slice choose, in that order.

        A part of a verified set counts as verified.
        """
        chosen: Any = indices
        if not isinstance(indices, slice):
            chosen = as_real("indices", indices, error=DataError)
        try:
            inputs, labels = self.inputs[chosen], self.labels[chosen]
        except IndexError as error:
            raise DataError(
                f"{self.name} {self.split} has samples 0 to {len(self) - 1} and the "
                f"subset asks for others ({error}): pass indices, a mask or a slice"
            ) from None
        return replace(self, inputs=inputs, labels=labels)


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view
