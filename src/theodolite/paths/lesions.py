"""Delete or exchange branches of a network, and compare with its frozen paths."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from theodolite.anatomy import unfused
from theodolite.core import (
    ConfigError,
    MeasurementError,
    NormMode,
    Reading,
    Status,
    Stopwatch,
)
from theodolite.instruments import (
    Batch,
    Listener,
    Outputs,
    apply_norm_mode,
    measuring,
)

from .branches import Branch, exchanged, find_branches, marks_of, without
from .frozen_model import Subject, subject_of
from .propagate import coefficients
from .tape import SILENT


@dataclass(frozen=True, kw_only=True, eq=False)
class Lesion(Reading):
    r"""How the output changes when branches are deleted or exchanged.

    Attributes:
        true_change: Relative change of the real network's output; gates react, and in
            norm modes ``batch`` and ``full`` also statistics.
        frozen_change: The same with gates and statistics frozen, as in the ensemble.
        alignment: Cosine between the two changes.
        lesions: Each lesion in words.
        residual: Relative distance between the sum of all single deletions and the
            ensemble's prediction, $\sum_j (y - y_{-j}) = \sum_r r\,c_r$; no
            entry where not every branch was deleted alone.
    """

    dims: ClassVar = {
        "true_change": ("lesion",),
        "true_change_error": ("lesion",),
        "frozen_change": ("lesion",),
        "frozen_change_error": ("lesion",),
        "alignment": ("lesion",),
        "residual": ("check",),
    }
    error_of: ClassVar = {
        "true_change": "true_change_error",
        "frozen_change": "frozen_change_error",
    }

    true_change: np.ndarray
    true_change_error: np.ndarray
    frozen_change: np.ndarray
    frozen_change_error: np.ndarray
    alignment: np.ndarray
    residual: np.ndarray
    lesions: tuple[str, ...]

    def coordinates(self) -> dict[str, list]:
        """Return the lesions in words."""
        return {
            "lesion": list(self.lesions),
            "check": ["single deletions"] * len(self.residual),
        }


@measuring()
def lesion(
    model: nn.Module,
    batch: Batch,
    *,
    norm_mode: NormMode | str,
    delete: Sequence[Sequence[int]] | None = None,
    exchange: Sequence[tuple[int, int]] = (),
    linearise: bool = False,
    promote: bool = True,
    outputs: Outputs | None = None,
) -> Lesion:
    """Return the change of the output when branches are deleted or exchanged.

    A branch that is deleted adds nothing to its skip. Two that are exchanged swap the
    parameters and buffers of their submodules.

    Args:
        model: Any module with residual additions; not changed.
        batch: A tensor, a pair (inputs, targets) or a mapping of keywords.
        norm_mode: Statistics that norms use.
        delete: Sets of branch numbers to delete; by default each branch alone.
        exchange: Pairs of branches to exchange.
        linearise: As in :func:`path_ensemble`.
        promote: Measure a model of lower precision by a copy in float64.
        outputs: ``outputs(model, batch)`` runs the model, where a call on the inputs
            does not return one tensor.

    Example:
        >>> from theodolite.core import ShortcutBlueprint
        >>> from theodolite.networks import build, set_weights
        >>> net = build(ShortcutBlueprint(width=2, depth=2, shortcut=1), seed=0)
        >>> set_weights(net, 0.5 * np.stack([np.eye(2), np.eye(2)]))
        >>> x = torch.ones(3, 2, dtype=torch.float64)
        >>> lesion(net, x, norm_mode="eval").frozen_change.round(6).tolist()
        [0.333333, 0.333333]
    """
    watch = Stopwatch()
    subject = subject_of(
        model, batch, outputs=outputs, norm_mode=norm_mode, promote=promote
    )
    with subject.frozen():
        tape, branches = subject.trace_branches(subject.batch, linearise=linearise)
    sets = _sets(delete, exchange, len(branches))
    with torch.no_grad():
        whole = tape.value
        cut = [without(tape, [branches[j] for j in chosen]) for chosen in sets]
        turned = [exchanged(tape, branches[i], branches[j]) for i, j in exchange]
        residual = np.zeros(0)
        by_set = dict(zip(sets, cut, strict=True))
        if all((j,) in by_set for j in range(len(branches))):
            stack = coefficients(tape, marks_of(tape, branches, "branches"))
            alone = [by_set[j,] for j in range(len(branches))]
            # All single deletions together are the derivative by the branches' scale.
            degrees = torch.arange(len(stack), dtype=stack.dtype, device=stack.device)
            wanted = torch.tensordot(degrees, stack, 1)
            total = torch.stack([whole - part for part in alone]).sum(0)
            residual = np.array([float((total - wanted).norm() / whole.norm())])
    before, *after = _true(subject, sets, exchange)
    names = [f"without {'+'.join(map(str, chosen))}" for chosen in sets]
    names += [f"exchanged {i} and {j}" for i, j in exchange]
    frozen = [_change(part - whole, whole) for part in (*cut, *turned)]
    true = [_change(part - before, before) for part in after]
    pairs = zip((*cut, *turned), after, strict=True)
    finite = all(math.isfinite(value) for value, _ in (*frozen, *true))
    return Lesion(
        true_change=np.array([value for value, _ in true]),
        true_change_error=np.array([error for _, error in true]),
        frozen_change=np.array([value for value, _ in frozen]),
        frozen_change_error=np.array([error for _, error in frozen]),
        alignment=np.array([_cosine(a - whole, b - before) for a, b in pairs]),
        residual=residual,
        lesions=tuple(names),
        status=Status.EXACT if finite else Status.NONFINITE,
        norm_mode=subject.norm_mode,
        norm_layers=subject.norm_layers,
        cost=watch.read(),
        method="float64 twin" if subject.promoted else "direct",
    )


def _sets(
    delete: Sequence[Sequence[int]] | None,
    exchange: Sequence[tuple[int, int]],
    count: int,
) -> list[tuple[int, ...]]:
    """Return the sets of branches to delete, checked."""
    sets = [(j,) for j in range(count)] if delete is None else [*map(tuple, delete)]
    named = [j for chosen in (*sets, *exchange) for j in chosen]
    wrong = [j for j in named if not isinstance(j, int) or not 0 <= j < count]
    if wrong or any(len(pair) != 2 for pair in exchange):
        raise ConfigError(
            f"branch {wrong[0]!r} was asked for, and the network has {count}: pass "
            f"numbers from 0 to {count - 1}"
            if wrong
            else "an exchange names two branches: pass pairs, such as (0, 1)"
        )
    return sets


def _true(
    subject: Subject,
    sets: Sequence[tuple[int, ...]],
    exchange: Sequence[tuple[int, int]],
) -> list[Tensor]:
    """Return the outputs of the real network, before and after each lesion."""
    model, batch = subject.model, subject.batch
    with subject.opened(), torch.no_grad():
        apply_norm_mode(model, subject.norm_mode, lambda: subject.run(batch))
        branches = find_branches(model, batch, subject.outputs).branches
        with unfused(model):  # with graphs, so that calls are numbered as recorded
            outputs = [_cut(subject, [])]
            outputs += [_cut(subject, [branches[j] for j in chosen]) for chosen in sets]
            for i, j in exchange:
                with _exchanged(model, branches[i], branches[j]):
                    outputs.append(_cut(subject, []))
    return outputs


def _cut(subject: Subject, branches: Sequence[Branch]) -> Tensor:
    """Return the output of the model without some branches."""
    with _Deleting(branches):
        return subject.run(subject.batch).detach().clone()


class _Deleting(Listener):
    """Zero operands of chosen calls, before they are added."""

    def __init__(self, branches: Sequence[Branch]) -> None:
        self._off = {(branch.call, branch.position) for branch in branches}
        self._calls = 0

    def on_operator(self, operator: Any, args: Any, kwargs: Any) -> Any:
        silent = operator._schema.name.partition("::")[2] in SILENT
        index, self._calls = self._calls, self._calls + (not silent)
        given = list(args)
        for place in range(len(given)):
            if (index, place) in self._off:
                written = operator._schema.is_mutable and place == 0
                blank = torch.Tensor.zero_ if written else torch.zeros_like
                given[place] = blank(given[place])
        return operator(*given, **kwargs)


@contextmanager
def _exchanged(model: nn.Module, first: Branch, second: Branch) -> Iterator[None]:
    """Swap the parameters and buffers of two branches, and swap them back."""
    pairs = list(zip(_held(model, first), _held(model, second), strict=False))
    fits = len(_held(model, first)) == len(_held(model, second))
    if not fits or any(a.shape != b.shape for a, b in pairs):
        raise MeasurementError(
            f"branches of {first.module!r} and {second.module!r} hold tensors of other "
            "shapes, so they cannot be exchanged: choose two that are alike"
        )
    _swap(pairs)
    try:
        yield
    finally:
        _swap(pairs)


def _swap(pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
    for a, b in pairs:
        a.data, b.data = b.data, a.data


def _held(model: nn.Module, branch: Branch) -> list[Tensor]:
    modules = [model.get_submodule(name) for name in branch.modules]
    return [t for m in modules for t in (*m.parameters(), *m.buffers())]


def _change(change: Tensor, whole: Tensor) -> tuple[float, float]:
    """Return the relative size of a change, and its error over samples."""
    if whole.ndim < 1 or len(whole) < 2:
        return float(change.norm() / whole.norm()), math.inf
    above = change.reshape(len(whole), -1).square().sum(1).double()
    below = whole.reshape(len(whole), -1).square().sum(1).double()
    ratio = float(above.sum() / below.sum())
    moved = (above - ratio * below) / below.mean()
    error = float(moved.std()) / math.sqrt(len(whole))
    size = math.sqrt(ratio)
    return size, error / (2 * size) if size else 0.0


def _cosine(a: Tensor, b: Tensor) -> float:
    size = float(a.norm() * b.norm())
    return float((a * b).sum()) / size if size else 1.0
