"""Labelled samples that classifiers are trained and tested on."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from theodolite.core import DataError


@dataclass(frozen=True, eq=False)
class LabelledSamples:
    """Samples with labels, to train on and to test on.

    Attributes:
        inputs: Training samples, floating, (N, ...).
        labels: -1 and +1 for networks of one output, whole numbers from 0 up for those
            of a score a class.
        test_inputs: Samples held out; may be left out.
        test_labels: Their labels.

    Example:
        >>> samples = LabelledSamples(np.eye(2), np.array([-1.0, 1.0]))
        >>> samples.targets(samples.labels, 1, torch.float64).tolist()
        [[-1.0], [1.0]]
    """

    inputs: Any
    labels: Any
    test_inputs: Any = None
    test_labels: Any = None

    def __post_init__(self) -> None:
        for name in ("inputs", "labels", "test_inputs", "test_labels"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, _tensor(value))
        if self.inputs is None or self.labels is None:
            raise DataError("inputs or labels are None: pass arrays or tensors of both")
        if (self.test_inputs is None) != (self.test_labels is None):
            raise DataError(
                "test samples came without labels or labels without samples: pass both "
                "or neither"
            )
        for name in ("", "test_") if self.tested else ("",):
            _check(getattr(self, f"{name}inputs"), getattr(self, f"{name}labels"), name)
        found = torch.unique(self.labels).tolist()
        if len(found) < 2:
            raise DataError(
                f"all labels are {found[0]:g} and a classifier tells classes apart: "
                "pass samples of at least 2"
            )

    @property
    def tested(self) -> bool:
        """Whether samples are held out."""
        return self.test_inputs is not None

    def __len__(self) -> int:
        return len(self.labels)

    def targets(self, labels: Tensor, outputs: int, dtype: torch.dtype) -> Tensor:
        """Return what a network should put out, (N, outputs)."""
        found = torch.unique(labels).tolist()
        if outputs == 1:
            if not set(found) <= {-1, 1}:
                raise DataError(
                    f"labels hold {found[:4]} and a network of one output wants -1 and "
                    "+1: pass such labels, or outputs = the number of classes"
                )
            return labels.to(dtype)[:, None]
        if any(label != int(label) or not 0 <= label < outputs for label in found):
            raise DataError(
                f"labels run from {found[0]:g} to {found[-1]:g} and {outputs} outputs "
                f"want whole numbers from 0 to {outputs - 1}: pass the place of a "
                "sample's class"
            )
        return torch.nn.functional.one_hot(labels.long(), outputs).to(dtype)


def _tensor(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value.detach()
    try:
        return torch.tensor(np.asarray(value))
    except (TypeError, ValueError) as error:
        raise DataError(
            f"a value of type {type(value).__name__} holds no numbers ({error}): pass "
            "arrays or tensors"
        ) from error


def _check(inputs: Tensor, labels: Tensor, name: str) -> None:
    if labels.ndim != 1 or len(inputs) != len(labels) or not len(labels):
        raise DataError(
            f"{name}inputs of shape {tuple(inputs.shape)} and {name}labels of shape "
            f"{tuple(labels.shape)}: pass one label a sample, and at least one sample"
        )
    if not inputs.is_floating_point():
        raise DataError(
            f"{name}inputs are of type {inputs.dtype}: pass floating numbers, such as "
            "rows of norm 1"
        )
    for part, what in ((inputs, "inputs"), (labels, "labels")):
        if part.is_floating_point() and not bool(torch.isfinite(part).all()):
            raise DataError(f"{name}{what} hold NaN or infinity: clean the data first")
