"""Fisher information of the parameters, by the model's own outputs or the targets."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from theodolite.core import MeasurementError, NormMode
from theodolite.instruments.differentiate.derivatives import Curve
from theodolite.instruments.model.losses import as_loss, judged
from theodolite.instruments.model.objective import (
    Batch,
    HalfSquareLoss,
    Loss,
    Reduction,
    Weights,
    checked_value,
    pair_of,
    reduction_of,
)
from theodolite.instruments.model.randomness import Randomness
from theodolite.instruments.operators.through_outputs import (
    OutputLoss,
    Outputs,
    ThroughOutputs,
    halves_of,
)
from theodolite.instruments.passes.batches import Batches
from theodolite.instruments.passes.grouping import Chunk
from theodolite.instruments.team.crews import Executor
from theodolite.instruments.team.processes import Team


class Fisher(ThroughOutputs):
    r"""$J^\top F_z J$ with $F_z$ the Fisher information of the model's own outputs.

    The loss names a distribution of targets given outputs $z$, and $F_z = E[\nabla_z
    \log p\, \nabla_z \log p^\top]$ over targets drawn from it, in closed form: no
    target is drawn and none of the data's is used, but for those to ignore. Normalised
    as the loss is, so that it is comparable with its Hessian. Known are categorical
    (``CrossEntropyLoss``, ``NLLLoss``), Bernoulli (``BCEWithLogitsLoss``), Gaussian
    (``MSELoss``, :class:`HalfSquareLoss`) and Poisson (``PoissonNLLLoss`` of
    logarithms) outputs. But for ``NLLLoss`` this is the Gauss–Newton matrix too.

    Args:
        model: Any module; left as found by every product.
        batches: A pair (inputs, targets), or a list or DataLoader of them.
        loss: A torch loss module that is one of the above.
        norm_mode: Statistics that normalisation layers use.
        params: Names of parameters; all that require a gradient by default.
        outputs: ``outputs(model, batch) -> tensor``; the model's own by default.
        reduction: As the loss module has it; need not be given.
        micro_batch: Samples a pass at most; saves memory, changes nothing else.
        graph_bytes: Memory that graphs may take; most of what is free by default.
        seed: Seed of whatever the model draws.
        randomness: ``fixed`` allows dropout and fixes its masks by the seed; under
            ``eval`` dropout is off.
        weights: ``weights(batch)`` gives what a mean of a loss of one's own divides
            by, as one number or one a sample.
        max_batches: Batches to take at most, from the first.
        team: Who else holds batches, where this process holds its share of them.
        executor: Has the products made by processes elsewhere, such as
            ``RayCluster``; this one then holds no share.

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
        executor: Executor | None = None,
    ) -> None:
        del executor  # where it is given, no operator is made here
        loss = as_loss(loss)
        then = _information(loss)
        run, _ = halves_of("Fisher", loss, outputs, None)
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


class EmpiricalFisher(ThroughOutputs):
    r"""Second moment of the gradients of single samples, $\frac1N\sum_n g_n g_n^\top$.

    The gradients are those of the loss at the data's own targets. This is no Fisher
    information, and near a minimum no approximation of one. Of a loss that sums,
    $\sum_n g_n g_n^\top$.

    Args:
        model: Any module; left as found by every product.
        batches: A pair (inputs, targets), or a list or DataLoader of them.
        loss: A loss of torch, or a function of outputs and targets; None where
            ``outputs`` and ``output_loss`` are given.
        norm_mode: Statistics that normalisation layers use.
        params: Names of parameters; all that require a gradient by default.
        outputs: ``outputs(model, batch) -> tensor``
            for a loss of one's own, samples along the first axis.
        output_loss: ``output_loss(outputs, batch) -> scalar`` that goes with it.
        reduction: How ``output_loss`` combines samples, ``mean`` by default.
        micro_batch: Samples a pass at most; saves memory, changes nothing else.
        graph_bytes: Memory that graphs may take; most of what is free by default.
        seed: Seed of whatever the model draws.
        randomness: ``fixed`` allows dropout and fixes its masks by the seed; under
            ``eval`` dropout is off.
        weights: ``weights(batch)`` gives what a mean of a loss of one's own divides
            by, as one number or one a sample.
        max_batches: Batches to take at most, from the first.
        team: Who else holds batches, where this process holds its share of them.
        executor: Has the products made by processes elsewhere, such as
            ``RayCluster``; this one then holds no share.

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
        executor: Executor | None = None,
    ) -> None:
        del executor  # where it is given, no operator is made here
        loss = None if loss is None else as_loss(loss)
        run, then = halves_of("The empirical Fisher", loss, outputs, output_loss)
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
        if self._mass is not None:
            count = self._mass(batch, samples) / chunk.weight
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
            "empirical Fisher wants one loss a sample, along the first axis; flatten "
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
        return lambda found, batch: judged(loss, found, pair_of(batch)[1])
    raise MeasurementError(
        f"no distribution of outputs is known of {kind.__name__} as it is set: pass "
        "CrossEntropyLoss, NLLLoss, BCEWithLogitsLoss without pos_weight, MSELoss, "
        "HalfSquareLoss or PoissonNLLLoss of logarithms, or measure GaussNewton"
    )


def _categorical(loss: Any) -> OutputLoss:
    """Return a function of outputs, per place that counts, reduced as the loss is."""
    normalised = isinstance(loss, nn.NLLLoss)
    mean = reduction_of(loss, None) == "mean"

    def information(found: Tensor, batch: Batch) -> Tensor:
        targets = pair_of(batch)[1]
        judged(loss, found.detach(), targets)  # which says where they do not fit
        found = found if found.ndim > 1 else found.unsqueeze(0)
        # Σ exp z has the Hessian diag(p) where z are logarithms of p; log Σ exp z has
        # diag(p) − pp^T where they are known up to a constant.
        each = found.exp().sum(1) if normalised else torch.logsumexp(found, 1)
        if not targets.is_floating_point():
            each = each[targets.reshape(each.shape) != loss.ignore_index]
        return each.mean() if mean else each.sum()

    return information
