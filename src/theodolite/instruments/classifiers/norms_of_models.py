"""Norms of the layers of any classifier, and its normalised margins."""

import math
from typing import Any

import numpy as np
import torch
from torch import nn

from theodolite.core import (
    MeasurementError,
    NormMode,
    Status,
    Stopwatch,
    TheodoliteError,
)

from ..model.objective import Outputs, samples_in, slice_batch
from ..model.process_state import with_progress
from ..passes.batches import Batches
from ..passes.problem import Model, Problem
from .classifier_passes import (
    ClassifierPasses,
    classifier_passes,
    classifier_problem,
    finer_passes,
)
from .features import tensor_of
from .labels import Labelling, Labels, SampleWeights, labels_in, sample_weights
from .layer_trace import LayerTrace
from .norm_folding import FoldedLayer, fold, product_of
from .norms_reading import ClassifierNorms, Margins, margins_of

# Samples on which doubling of each layer is tried, by choice.
_FEW = 32
_EPS = float(np.finfo(np.float64).eps)


@with_progress("batches")
def classifier_norms(
    model: Model | Problem,
    batches: Batches | None = None,
    *,
    norm_mode: NormMode | str | None = None,
    labels: Labels | None = None,
    weights: SampleWeights | None = None,
    outputs: Outputs | None = None,
    ignore_index: int | None = -100,
    directions: bool = False,
    scales: bool = True,
    max_batches: int | None = None,
) -> ClassifierNorms:
    r"""Measure $\rho_k$, $\rho$, $V_k$, and the normalised margins of all samples.

    Batch norms are folded into the linear layer before them, else into the one after.
    That needs constant statistics, or those of one batch, and a layer output that is
    used nowhere else; ``notes`` says for each norm what was done. A norm that is not
    folded stays a part of the network: then $f$ is normalised by the raw weights next
    to it.

    Args:
        model: Any classifier, never changed; or a :class:`Problem`, whose model, data,
            ``norm_mode``, ``outputs`` and ``max_batches`` are used.
        batches: Pairs (inputs, labels), or mappings with ``labels``; a list or a
            DataLoader of them.
        norm_mode: Statistics that normalisation layers use, as for :class:`Problem`. In
            ``batch`` mode each batch has its own statistics, so with several batches
            nothing is folded.
        labels: ``labels(batch)``; whole numbers from 0 up, or ±1.
        weights: ``weights(batch)``, one per label; samples of weight 0 are ignored.
        outputs: ``outputs(model, batch)``; the model's own by default.
        ignore_index: Label of samples to ignore.
        directions: Whether to return $V_k$ too, as matrices in float64.
        scales: Whether to double each layer on its own and compare the outputs.
        max_batches: Largest number of batches to use.

    Returns:
        The reading.

    Example:
        >>> first, last = nn.Linear(2, 2, bias=False), nn.Linear(2, 1, bias=False)
        >>> for layer in (first, last):
        ...     _ = nn.init.constant_(layer.weight, 1.0)
        >>> net = nn.Sequential(first, nn.ReLU(), last)
        >>> x, y = torch.tensor([[3.0, 4.0], [0.0, 0.0]]), torch.tensor([1, -1])
        >>> reading = classifier_norms(net, (x, y), norm_mode="eval")
        >>> reading.layer_norms.round(4), reading.margins.round(4)
        (array([2.    , 1.4142]), array([ 4.9497, -0.    ]))
    """
    watch = Stopwatch()
    settings = {"norm_mode": norm_mode, "outputs": outputs, "max_batches": max_batches}
    problem = classifier_problem(model, batches, **settings)
    with classifier_passes(problem, callables=(labels, weights)) as passes:
        layers, notes, left_out = _layers(passes)
        measured = _margins(passes, labels, weights, ignore_index)
        trials = _trials(passes, layers) if scales else {}
        noise = _noise(passes)
        eps = max(torch.finfo(p.dtype).eps for p in passes.model.parameters())
    return _reading(
        layers,
        measured,
        trials,
        noise=noise,
        # Statistics are computed in the model's own type.
        eps=eps if any(layer.folded for layer in layers) else _EPS,
        notes=tuple(notes),
        left_out=tuple(left_out),
        directions=tuple(_direction(layer) for layer in layers) if directions else (),
        norm_mode=passes.mode,
        norm_layers=passes.norm_layers,
        status=Status.EXACT,
        cost=watch.read(),
        method="norms folded"
        if any(x.folded for x in layers)
        else "weights as they are",
    )


def _layers(passes: ClassifierPasses) -> tuple[list[FoldedLayer], list[str], list[str]]:
    trace, model = LayerTrace(passes.model), passes.model
    passes.outputs(passes.items[0], trace)
    if not trace.layers:
        raise MeasurementError(
            f"{type(model).__name__} applies no linear or convolutional layer, so it "
            "has no norms to take: pass a classifier with a final linear layer"
        )
    several = len(passes.items) > 1
    layers, notes = fold(
        trace.layers, trace.norms, passes.moments, mode=passes.mode, several=several
    )
    left_out = [
        name
        for owner, module in model.named_modules()
        if id(module) not in trace.modules and not _inside(owner, trace, model)
        for name, parameter in module.named_parameters(owner, recurse=False)
        if parameter.ndim > 1 and id(parameter) not in trace.modules
    ]
    return layers, notes, left_out


def _inside(owner: str, trace: LayerTrace, model: nn.Module) -> bool:
    """Return whether a module is inside a recorded layer, as parametrisations are."""
    parts = owner.split(".")
    paths = [".".join(parts[:end]) for end in range(len(parts))]
    return any(id(model.get_submodule(path)) in trace.modules for path in paths)


def _margins(
    passes: ClassifierPasses,
    labels: Labels | None,
    weights: SampleWeights | None,
    ignore_index: int | None,
) -> Margins:
    labelling, parts = None, []
    for batch in passes.items:
        rows = passes.outputs(batch)
        told = labels_in(batch, labels)
        if labelling is None:
            wide = rows.ndim > tensor_of(told).squeeze(-1).ndim
            classes = rows.shape[-1] if wide and rows.shape[-1] > 1 else 2
            labelling = Labelling(classes, ignore_index)
        places, counts = labelling.read(told)
        mass = torch.ones(len(places), dtype=torch.float64, device="cpu")
        if weights is not None:
            mass = sample_weights(weights(batch), places).cpu()
        places, counts = places.cpu(), counts.cpu() & (mass > 0)
        if rows.shape[0] == 0 or rows.numel() % len(places):
            raise MeasurementError(
                f"outputs have shape {tuple(rows.shape)} and there are {len(places)} "
                "labels: pass outputs with a row, or a number, for each label"
            )
        rows = rows.reshape(len(places), -1)
        parts.append(
            margins_of(rows[counts.to(rows.device)], places[counts], mass[counts])
        )
    measured = Margins.joined(parts)
    if len(measured.labels.unique()) < 2:
        raise MeasurementError(
            f"samples of {len(measured.labels.unique())} class came, and margins are "
            "told between at least 2: pass data of all classes"
        )
    return measured


def _trials(
    passes: ClassifierPasses, layers: list[FoldedLayer]
) -> dict[str, tuple[float, float]]:
    """Double the weights of each layer in turn, and compare outputs."""
    batch = passes.items[0]
    if (samples := samples_in(batch)) is not None and samples > _FEW:
        batch = slice_batch(batch, 0, _FEW)
    with passes.own_statistics():
        start = passes.outputs(batch).double()
        size = float(start.norm()) or 1.0
        trials = {}
        for name, parameter in _weights(passes.model, layers).items():
            held = parameter.data
            try:
                parameter.data = 2 * held
                moved = passes.outputs(batch).double()
            finally:
                parameter.data = held
            same = float((moved - start).norm()) / size
            trials[name] = same, float((moved - 2 * start).norm()) / size
    return trials


def _weights(model: nn.Module, layers: list[FoldedLayer]) -> dict[str, nn.Parameter]:
    """Return the parameters that are weights of layers, by the layer's name."""
    modules, weights = dict(model.named_modules()), {}
    for layer in layers:
        module = modules.get("" if layer.name == "(model)" else layer.name)
        weight = None if module is None else module._parameters.get("weight")
        if isinstance(weight, nn.Parameter):
            weights[layer.name] = weight
    return weights


def _noise(passes: ClassifierPasses) -> float:
    """Return the error of an output against exact arithmetic, on the first batch."""
    batch = passes.items[0]
    ours = passes.outputs(batch)
    eps = torch.finfo(ours.dtype).eps
    if ours.dtype == torch.float64:
        return 16 * eps * float(ours.abs().max())
    try:
        with finer_passes(passes) as (finer, same):
            theirs = finer.outputs(same)
    except (TheodoliteError, RuntimeError, TypeError, ValueError):
        return 64 * eps * float(ours.abs().max())
    gap = float((theirs.double() - ours.double()).abs().max())
    return 2 * gap + eps * float(ours.abs().max())


def _direction(layer: FoldedLayer) -> np.ndarray:
    norm = layer.matrix.norm()
    return (layer.matrix / norm).cpu().numpy() if norm else layer.matrix.cpu().numpy()


def _reading(
    layers: list[FoldedLayer],
    measured: Margins,
    trials: dict[str, tuple[float, float]],
    *,
    noise: float,
    eps: float,
    **rest: Any,
) -> ClassifierNorms:
    norms = [float(layer.matrix.norm()) for layer in layers]
    raw = [float(layer.raw.norm()) for layer in layers]
    varying = [norms[i] for i, layer in enumerate(layers) if not layer.invariance]
    log_rho = product_of(norms)
    if not math.isfinite(log_rho):
        bad = next(
            x.name for x, n in zip(layers, norms, strict=True) if not 0 < n < 1e308
        )
        raise MeasurementError(
            f"the weights of {bad!r} have norm 0 or hold NaN or infinity, so nothing "
            "can be divided by the product of norms: check that layer"
        )
    shrink = math.exp(-log_rho) if log_rho > -700 else math.inf
    f, margins = (x.cpu().numpy() * shrink for x in (measured.own, measured.margin))
    mass = measured.weights.numpy()
    rows = [layer.matrix.norm(dim=1).cpu().numpy() for layer in layers]
    relative = 4 * eps * len(layers)
    rho = math.exp(log_rho) if log_rho < 700 else math.inf
    # Sums over f are sums over outputs with rho taken out.
    square, size = measured.square, float(measured.weights.sum())
    ratio = measured.aligned / square if square else math.nan
    equilibrium = measured.aligned / square * rho if square else math.nan
    worst = noise * (size * square) ** 0.5 / square if square else 0.0
    unsure = float(((np.abs(margins) <= noise * shrink) * mass).sum() / mass.sum())
    tried = [trials.get(layer.name, (math.nan, math.nan)) for layer in layers]
    return ClassifierNorms(
        names=tuple(layer.name for layer in layers),
        layer_norms=np.array(norms),
        layer_norm_error=4 * eps * max(norms),
        raw_norms=np.array(raw),
        row_norms=np.concatenate(rows),
        row_layers=np.repeat(np.arange(len(rows)), [len(part) for part in rows]),
        rho=rho,
        rho_error=relative * rho,
        log_rho=log_rho,
        log_rho_raw=product_of(raw),
        log_rho_varying=product_of(varying),
        log_rho_error=relative,
        folded=np.array([layer.folded for layer in layers]),
        invariance=np.array([layer.invariance for layer in layers]),
        scaled_off=np.array([pair[0] for pair in tried]),
        doubled_off=np.array([pair[1] for pair in tried]),
        f=f,
        margins=margins,
        f_error=(noise + relative * float(measured.own.abs().max())) * shrink,
        labels=measured.labels.numpy(),
        equilibrium=equilibrium,
        equilibrium_error=abs(equilibrium) * relative
        + worst * (1 + 2 * abs(ratio)) * rho,
        equilibrium_ratio=ratio,
        equilibrium_ratio_error=worst * (1 + 2 * abs(ratio)),
        mean_margin=float(margins @ mass / mass.sum()),
        least_margin=float(margins.min()),
        error_rate=float(((margins <= 0) * mass).sum() / mass.sum()),
        error_rate_error=unsure,
        separable=bool((margins > 0).all()),
        average_separable=bool(margins @ mass > 0),
        **rest,
    )
