"""Fisher information of the parameters, from the model's outputs or the targets."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core import MeasurementError, NormMode

from ..differentiate.derivatives import Curve
from ..distributed.processes import Team
from ..model.losses import as_loss, judged
from ..model.objective import (
    Batch,
    HalfSquareLoss,
    Loss,
    Reduction,
    Weights,
    checked_value,
    pair_of,
    reduction_of,
)
from ..model.randomness import Randomness
from ..passes.batches import Batches
from ..passes.grouping import Chunk
from .output_curvature import OutputCurvature, OutputLoss, Outputs, split_loss


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
        model: Any module; never changed.
        batches: A pair (inputs, targets), or a list or DataLoader of them.
        loss: A torch loss module that is one of the above.
        norm_mode: Statistics that normalisation layers use.
        outputs: ``outputs(model, batch) -> tensor``; the model's outputs by default.
        reduction: That of the loss module; need not be given.
        params, micro_batch, graph_bytes, seed, randomness, weights, max_batches, team:
        As for
            :class:`Hessian`.

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

    def __init__(
        self,
        model: nn.Module,
        batches: Batches,
        *,
        loss: Loss,
        norm_mode: NormMode | str,
        params: Sequence[str] | None = None,
        outputs: Outputs | None = None,
        reduction: Reduction | None = None,
        micro_batch: int | None = None,
        graph_bytes: int | None = None,
        seed: int = 0,
        randomness: Randomness = "refuse",
        weights: Weights | None = None,
        max_batches: int | None = None,
        team: Team | None = None,
    ) -> None:
        loss = as_loss(loss)
        then = _information(loss)
        run, _ = split_loss("Fisher", loss, outputs, None)
        super().__init__(
            model,
            batches,
            outputs=run,
            output_loss=then,
            loss=loss,
            norm_mode=norm_mode,
            params=params,
            reduction=reduction,
            micro_batch=micro_batch,
            graph_bytes=graph_bytes,
            seed=seed,
            randomness=randomness,
            weights=weights,
            max_batches=max_batches,
            team=team,
        )
        self.randomness = randomness
        self._remake = lambda change: Fisher(
            change(self.model),
            self.changed_data(change),
            loss=change(loss),
            norm_mode=norm_mode,
            params=self.names,
            outputs=outputs,
            reduction=reduction,
            micro_batch=micro_batch,
            graph_bytes=graph_bytes,
            seed=seed,
            randomness=randomness,
            weights=weights,
            team=team,
        )

    def _curved(self, chunk: Chunk, outputs: Tensor, change: Tensor) -> Tensor:
        """Multiply by the information of the outputs."""
        if chunk.weight == 0:
            return torch.zeros_like(change)
        leaf = outputs.detach().requires_grad_()
        value = checked_value(self._output_loss(leaf, chunk.batch))
        return Curve(chunk.weight * value, [leaf]).product([change])[0]


class EmpiricalFisher(OutputCurvature):
    r"""Second moment of the gradients of single samples, $\frac1N\sum_n g_n g_n^\top$.

    The gradients are those of the loss at the data's own targets. This is no Fisher
    information, and near a minimum no approximation of one. For a loss that sums it is
    $\sum_n g_n g_n^\top$.

    Args:
        model: Any module; never changed.
        batches: A pair (inputs, targets), or a list or DataLoader of them.
        loss: A torch loss or a function of outputs and targets; None where ``outputs``
            and ``output_loss`` are given.
        norm_mode: Statistics that normalisation layers use.
        outputs: ``outputs(model, batch) -> tensor``, samples along the first axis.
        output_loss: ``output_loss(outputs, batch) -> scalar`` that goes with it.
        reduction: How ``output_loss`` combines samples, ``mean`` by default.
        params, micro_batch, graph_bytes, seed, randomness, weights, max_batches, team:
        As for
            :class:`Hessian`.

    References:
        Kunstner, Balles and Hennig (2019), Limitations of the empirical Fisher
        approximation for natural gradient descent, NeurIPS.
    """

    title = "empirical Fisher"

    def __init__(
        self,
        model: nn.Module,
        batches: Batches,
        *,
        loss: Loss | None = None,
        norm_mode: NormMode | str,
        params: Sequence[str] | None = None,
        outputs: Outputs | None = None,
        output_loss: OutputLoss | None = None,
        reduction: Reduction | None = None,
        micro_batch: int | None = None,
        graph_bytes: int | None = None,
        seed: int = 0,
        randomness: Randomness = "refuse",
        weights: Weights | None = None,
        max_batches: int | None = None,
        team: Team | None = None,
    ) -> None:
        loss = None if loss is None else as_loss(loss)
        run, then = split_loss("The empirical Fisher", loss, outputs, output_loss)
        _refuse_class_weights(loss)
        super().__init__(
            model,
            batches,
            outputs=run,
            output_loss=then,
            loss=loss,
            norm_mode=norm_mode,
            params=params,
            reduction=reduction,
            micro_batch=micro_batch,
            graph_bytes=graph_bytes,
            seed=seed,
            randomness=randomness,
            weights=weights,
            max_batches=max_batches,
            team=team,
        )
        self.randomness = randomness
        self._remake = lambda change: EmpiricalFisher(
            change(self.model),
            self.changed_data(change),
            loss=change(loss),
            norm_mode=norm_mode,
            params=self.names,
            outputs=outputs,
            output_loss=output_loss,
            reduction=reduction,
            micro_batch=micro_batch,
            graph_bytes=graph_bytes,
            seed=seed,
            randomness=randomness,
            weights=weights,
            team=team,
        )

    def _curved(self, chunk: Chunk, outputs: Tensor, change: Tensor) -> Tensor:
        """Multiply by the outer products of the gradients by single outputs."""
        if chunk.weight == 0:
            return torch.zeros_like(change)
        batch = chunk.batch
        samples = _samples(outputs, batch, chunk.samples)
        leaf = outputs.detach().requires_grad_()
        value = chunk.weight * checked_value(self._output_loss(leaf, batch))
        (slope,) = torch.autograd.grad(value, leaf)
        # Of a mean over M samples, slope holds the gradients of single ones over M.
        count = 1.0
        if not self._divisor.sums:
            count = self._divisor(batch, samples) / chunk.weight
        rows = slope.reshape(samples, -1)
        along = (rows * change.reshape(samples, -1)).sum(1, keepdim=True)
        return (count * along * rows).reshape(change.shape)


def _samples(outputs: Tensor, batch: Batch, samples: int | None) -> int:
    paired = isinstance(batch, tuple | list) and len(batch) == 2
    targets = batch[1] if paired else None
    fits = samples == len(outputs)
    if isinstance(targets, Tensor) and not targets.is_floating_point():
        fits = fits and targets.numel() == samples
    if not fits:
        raise MeasurementError(
            f"outputs of shape {tuple(outputs.shape)} for {samples} samples: the "
            "empirical Fisher wants one loss per sample, along the first axis; flatten "
            "places into samples by outputs= and output_loss="
        )
    return len(outputs)


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
        judged(loss, outputs.detach(), targets)  # which says where they do not fit
        outputs = outputs if outputs.ndim > 1 else outputs.unsqueeze(0)
        # Σ exp z has the Hessian diag(p) where z are logarithms of p; log Σ exp z has
        # diag(p) − pp^T where they are known up to a constant.
        each = outputs.exp().sum(1) if normalised else torch.logsumexp(outputs, 1)
        if not targets.is_floating_point():
            each = each[targets.reshape(each.shape) != loss.ignore_index]
        return each.mean() if mean else each.sum()

    return information
