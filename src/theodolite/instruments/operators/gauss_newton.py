"""The Gauss–Newton matrix and the Fisher information of the parameters."""

from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core import MeasurementError

from ..model.misfits import OF_CLASSES
from ..model.objective import (
    Batch,
    HalfSquareLoss,
    Outputs,
    checked_value,
    judged,
    pair_of,
    reduction_of,
)
from ..passes.grouping import Chunk
from ..passes.problem import OutputLoss
from .derivative_check import CheckedFunction
from .output_curvature import OutputCurvature, split_loss


class GaussNewton(OutputCurvature):
    r"""$J^\top H_z J$: the Jacobian $J$ of outputs and the loss's Hessian by outputs.

    Args:
        model: Any module, never changed; or a :class:`Problem`.
        batches: Its data, where no :class:`Problem` was given.
        settings: Those of :class:`Problem`, such as ``loss``: a torch loss or a
            function of outputs and targets, or ``outputs`` and ``output_loss``.

    Example:
        >>> layer = nn.Linear(2, 1, bias=False, dtype=torch.float64)
        >>> x = torch.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
        >>> operator = GaussNewton(
        ...     layer, (x, x[:, :1]), loss=nn.MSELoss(), norm_mode="batch"
        ... )
        >>> operator.dense()
        array([[1., 0.],
               [0., 4.]])
    """

    title = "Gauss–Newton"

    def _split(self) -> tuple[Outputs, OutputLoss]:
        return split_loss("Gauss–Newton", self.problem)

    def _differentiated(self, chunk: Chunk) -> list[CheckedFunction]:
        outputs = self._prepared.run(chunk).detach().requires_grad_()
        loss = CheckedFunction(
            run=lambda: checked_value(self._output_loss(outputs, chunk.batch)),
            variables=[outputs],
            twice=True,
        )
        return [*super()._differentiated(chunk), loss]


class Fisher(OutputCurvature):
    r"""$J^\top F_z J$ with $F_z$ the Fisher information of the model's own outputs.

    The loss names a distribution of targets given outputs $z$, and $F_z = E[\nabla_z
    \log p\, \nabla_z \log p^\top]$ over targets drawn from it, in closed form: no
    target is drawn and none of the data's is used, except to know which to ignore. It
    is normalised like the loss, so that it compares with its Hessian. Known are
    categorical (``CrossEntropyLoss``, ``NLLLoss``), Bernoulli (``BCEWithLogitsLoss``),
    Gaussian (``MSELoss``, :class:`HalfSquareLoss`) and Poisson (``PoissonNLLLoss`` of
    logarithms) outputs. Except for ``NLLLoss`` this is the Gauss–Newton matrix too.

    Args:
        model: Any module, never changed; or a :class:`Problem`.
        batches: Its data, where no :class:`Problem` was given.
        settings: Those of :class:`Problem`; ``loss`` is one of the above.

    References:
        Martens (2020), New insights and perspectives on the natural gradient method,
        JMLR 21, §§5 and 9.

    Example:
        >>> layer = nn.Linear(1, 2, bias=False, dtype=torch.float64)
        >>> _ = nn.init.zeros_(layer.weight)
        >>> data = torch.ones(1, 1, dtype=torch.float64), torch.tensor([0])
        >>> Fisher(
        ...     layer, data, loss=nn.CrossEntropyLoss(), norm_mode="eval"
        ... ).dense()
        array([[ 0.25, -0.25],
               [-0.25,  0.25]])
    """

    title = "Fisher"

    def _split(self) -> tuple[Outputs, OutputLoss]:
        information = _information(self.problem.loss)
        return split_loss("Fisher", self.problem)[0], information


class EmpiricalFisher(OutputCurvature):
    r"""Second moment of the gradients of single samples, $\frac1N\sum_n g_n g_n^\top$.

    The gradients are those of the loss at the data's own targets. This is no Fisher
    information, and near a minimum no approximation of one. For a loss that sums it is
    $\sum_n g_n g_n^\top$. ``CrossEntropyLoss`` and ``NLLLoss`` of outputs with several
    places per sample, shape $(N, C, d_1, \dots)$, have one term and one $g_n$ per place
    that counts.

    Args:
        model: Any module, never changed; or a :class:`Problem`.
        batches: Its data, where no :class:`Problem` was given.
        settings: Those of :class:`Problem`, such as ``loss``: a torch loss or a
            function of outputs and targets, or ``outputs``, samples along the first
            axis, and ``output_loss``.

    References:
        Kunstner, Balles and Hennig (2019), Limitations of the empirical Fisher
        approximation for natural gradient descent, NeurIPS.
    """

    title = "empirical Fisher"

    def _split(self) -> tuple[Outputs, OutputLoss]:
        parts = split_loss("The empirical Fisher", self.problem)
        _refuse_class_weights(self.problem.loss)
        return parts

    def _curved(self, chunk: Chunk, outputs: Tensor, change: Tensor) -> Tensor:
        """Multiply by the outer products of the gradients of loss terms by outputs."""
        if chunk.weight == 0:
            return torch.zeros_like(change)
        batch, loss = chunk.batch, self.problem.loss
        by_place = isinstance(loss, OF_CLASSES) and outputs.ndim > 2
        _check_samples(outputs, batch, chunk.samples, by_place)
        leaf = outputs.detach().requires_grad_()
        value = chunk.weight * checked_value(self._output_loss(leaf, batch))
        (slope,) = torch.autograd.grad(value, leaf)
        if by_place:  # the axis of classes is the second
            slope, change = slope.movedim(1, -1), change.movedim(1, -1)
        terms = slope.shape[:-1].numel() if by_place else len(slope)
        # For a mean over M terms, slope holds the gradients of the terms divided by M.
        count = 1.0
        if not self._divisor.sums:
            count = self._divisor(batch, terms) / chunk.weight
        rows = slope.reshape(terms, -1)
        along = (rows * change.reshape(terms, -1)).sum(1, keepdim=True)
        product = (count * along * rows).reshape(change.shape)
        return product.movedim(-1, 1) if by_place else product


def _check_samples(
    outputs: Tensor, batch: Batch, samples: int | None, by_place: bool
) -> None:
    paired = isinstance(batch, tuple | list) and len(batch) == 2
    targets = batch[1] if paired else None
    fits = samples == len(outputs)
    if isinstance(targets, Tensor) and not targets.is_floating_point():
        fits = fits and (by_place or targets.numel() == samples)
    if not fits:
        raise MeasurementError(
            f"outputs of shape {tuple(outputs.shape)} for {samples} samples: the "
            "empirical Fisher wants one loss per sample, along the first axis, or "
            "CrossEntropyLoss or NLLLoss of outputs (samples, classes, places); else "
            "flatten places into samples by outputs= and output_loss="
        )


def _refuse_class_weights(loss: Any) -> None:
    if getattr(loss, "weight", None) is not None:
        raise MeasurementError(
            f"{type(loss).__name__} has class weights, with which samples are no draws "
            "from one distribution: leave them out, or measure GaussNewton"
        )


def _information(loss: Any) -> OutputLoss:
    """Return a function of outputs whose Hessian is their Fisher information."""
    kind = type(loss)
    _refuse_class_weights(loss)
    if kind in (nn.CrossEntropyLoss, nn.NLLLoss):
        return _categorical(loss)
    own = kind in (nn.MSELoss, HalfSquareLoss)
    own = own or (kind is nn.BCEWithLogitsLoss and loss.pos_weight is None)
    own = own or (kind is nn.PoissonNLLLoss and loss.log_input)
    if own:
        return lambda outputs, batch: judged(loss, outputs, pair_of(batch)[1])
    raise MeasurementError(
        f"no distribution of outputs is known of {kind.__name__} as it is set: pass "
        "CrossEntropyLoss, NLLLoss, BCEWithLogitsLoss without pos_weight, MSELoss, "
        "HalfSquareLoss or PoissonNLLLoss of logarithms, or measure GaussNewton"
    )


def _categorical(loss: Any) -> OutputLoss:
    """Return a function of outputs, per place that counts, reduced as the loss is."""
    normalised = isinstance(loss, nn.NLLLoss)
    mean = reduction_of(loss, None) == "mean"

    def information(outputs: Tensor, batch: Batch) -> Tensor:
        targets = pair_of(batch)[1]
        judged(loss, outputs.detach(), targets)  # which raises if they do not fit
        outputs = outputs if outputs.ndim > 1 else outputs.unsqueeze(0)
        # Σ exp z has the Hessian diag(p) where z are logarithms of p; log Σ exp z has
        # diag(p) − pp^T where they are known up to a constant.
        each = outputs.exp().sum(1) if normalised else torch.logsumexp(outputs, 1)
        if not targets.is_floating_point():
            each = each[targets.reshape(each.shape) != loss.ignore_index]
        return each.mean() if mean else each.sum()

    return information
