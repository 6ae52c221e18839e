"""The quantities that a watch measures: each a function of scene and snapshot."""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.optim import SGD, Optimizer

from theodolite.core import (
    ConfigError,
    MeasurementError,
    NormMode,
    norm_counts,
    unknown_name,
)
from theodolite.instruments import (
    extreme_eigenvalues,
    norm_layers_as_is,
    read_batches,
    run_model,
    samples_in,
    slice_batch,
)
from theodolite.paths import path_ensemble
from theodolite.training import Every, Probe, Snapshot

from ..measures.charting import Chart, chart_of
from ..measures.random_layers import switch_off_random_layers
from ..measures.site import logits_in
from ..measures.stability import bound
from ..records.outcomes import NOT_RESOLVED
from .signals import Glimpse, glimpse

Found = dict[str, Any]

# Samples used to record the network's parts and to measure its paths.
_CHARTED, _FOLLOWED = 8, 4
# Sharpness to 1 %, by at most this many products; see its error.
_TOLERANCE, _PRODUCTS = 1e-2, 60
# Samples whose signals are measured.
_LOOKED_AT = 64

DEFAULT = (
    "loss",
    "sharpness",
    "gradient_norm",
    "branch_gain",
    "effective_depth",
    "weight_norm",
    "rate",
)


@dataclass(kw_only=True, eq=False)
class Scene:
    """State shared by all measurements of one training.

    Attributes:
        norm_mode: Statistics that normalisation layers use while measuring.
        title: Name of the model, known at the first measurement.
        seed: Seed of all random numbers.
        insist: Whether a quantity that cannot be measured is a failure, or left out.
        optimizer: Returns the optimiser in use, if it is known.
        missing: What was left out, with the reason.
        over: Whether the training has ended, so that gradients are old.
        loss_samples: Number of samples that the loss uses and number given, if they
            differ.
        chart: The network's parts, once they are recorded.
        norm_layers: Names of norm layers by their mode at the last measurement, under
            ``as_is``.
        spent_s: Seconds of wall time that measurements took.
    """

    norm_mode: NormMode
    title: str = ""
    seed: int = 0
    insist: bool = False
    optimizer: Callable[[Snapshot], Optimizer | None] = lambda at: None
    missing: dict[str, str] = field(default_factory=dict)
    over: bool = False
    loss_samples: tuple[int, int] | None = None
    chart: Chart | None = None
    spent_s: float = 0.0
    norm_layers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    last: tuple[int, Glimpse] | None = None


def probes_of(names: Iterable[str], scene: Scene, every: int) -> list[Probe]:
    """Return one probe per quantity.

    Raises:
        ConfigError: A name is given twice, or no names are.
        UnknownNameError: A name is not known.
    """
    names = (names,) if isinstance(names, str) else tuple(names)
    for name in names:
        if name not in QUANTITIES:
            raise unknown_name("quantity", name, QUANTITIES)
    if not names or len(set(names)) < len(names):
        raise ConfigError(
            f"quantities {names} were asked for: name at least one, and each once"
        )
    return [Probe(name, _Look(name, scene), Every(every)) for name in names]


@dataclass(frozen=True, eq=False)
class _Look:
    """One quantity as a probe measures it."""

    name: str
    scene: Scene

    def __call__(self, at: Snapshot) -> list[Found]:
        start = time.perf_counter()
        self.scene.title = type(at.model).__name__
        mode = {"norm_mode": str(self.scene.norm_mode), "seed": self.scene.seed}
        layers = norm_layers_as_is(at.model, self.scene.norm_mode)
        self.scene.norm_layers = layers
        mode |= {"norm_layers": norm_counts(layers)} if layers else {}
        try:
            rows = QUANTITIES[self.name](self.scene, at)
            if rows:
                self.scene.missing.pop(self.name, None)
        except _LackingError as lacking:
            if self.scene.insist:
                raise MeasurementError(str(lacking)) from None
            self.scene.missing[self.name] = str(lacking)
            rows = []
        seconds = time.perf_counter() - start
        self.scene.spent_s += seconds
        return [{**row, **mode, "seconds": seconds} for row in rows]


class _LackingError(Exception):
    """A quantity lacks an input; if it is a default quantity, it is left out."""


def _number(quantity: str, value: float, error: float | None, **labels: Any) -> Found:
    return {"quantity": quantity, "value": value, "error": error, **labels}


def _loss(scene: Scene, at: Snapshot) -> list[Found]:
    if math.isfinite(at.loss):
        if scene.loss_samples is None:
            return [_number("loss", at.loss, None)]
        taken, given = scene.loss_samples
        return [_number("loss", at.loss, None, n_samples=taken, of_samples=given)]
    if not scene.over and not math.isinf(at.loss) and at.criterion is None:
        raise _LackingError("the loss is not seen: pass loss=")
    return []


def _gradient_norm(scene: Scene, at: Snapshot) -> list[Found]:
    grads = [p.grad for p in at.model.parameters() if p.grad is not None]
    if scene.over or not grads:  # old ones, or none
        return []
    return [_number("gradient_norm", _norm(grads), None)]


def _weight_norm(scene: Scene, at: Snapshot) -> list[Found]:
    return [_number("weight_norm", _norm(p for p in at.model.parameters()), None)]


def _norm(tensors: Iterable[torch.Tensor]) -> float:
    squares = (float(t.detach().double().square().sum()) for t in tensors)
    return math.sqrt(sum(squares))


def _rate(scene: Scene, at: Snapshot) -> list[Found]:
    optimizer = scene.optimizer(at)
    if optimizer is None:
        raise _LackingError("the optimiser is not known here")
    groups = optimizer.param_groups
    apart: list[Found] = [{}] if len(groups) == 1 else [
        {"group": place} for place in range(len(groups))
    ]  # fmt: skip
    return [
        _number("rate", float(group["lr"]), None, **labels)
        for group, labels in zip(groups, apart, strict=True)
    ]


def _sharpness(scene: Scene, at: Snapshot) -> list[Found]:
    if at.criterion is None:
        raise _LackingError("no loss is known: pass loss= (and batches=)")
    if isinstance(at.criterion, nn.Module) and not _paired(at.data):
        raise _LackingError(
            "the targets are not seen: call the loss module that was passed, or pass "
            "batches="
        )
    _switch_off(scene, at)
    ends = extreme_eigenvalues(
        at.model,
        at.data,
        loss=at.criterion,
        norm_mode=scene.norm_mode,
        k=1,
        ends="largest",
        tol=_TOLERANCE,
        max_matvecs=_PRODUCTS,
        seed=scene.seed,
    )
    value, error = float(ends.eigenvalues[0]), float(ends.errors[0])
    facts = {"status": str(ends.status), "passes": ends.cost.passes}
    rows = [_number("sharpness", value, error, **facts)]
    if abs(value) > error:
        scene.missing.pop("rate_over_stable", None)
        return rows + _over_stable(scene.optimizer(at), value, error)
    if isinstance(scene.optimizer(at), SGD):
        said = f"{NOT_RESOLVED}, for the error bar of the sharpness holds zero"
        scene.missing["rate_over_stable"] = f"{said} (step {at.step})"
    return rows


def _over_stable(
    optimizer: Optimizer | None, sharpness: float, error: float
) -> list[Found]:
    """Return rate times sharpness over its stable bound, for SGD only.

    Other optimisers scale their steps, and the plain Hessian does not bound them.
    """
    if not isinstance(optimizer, SGD):
        return []
    group = max(optimizer.param_groups, key=lambda one: one["lr"])
    most = bound(
        momentum=group["momentum"],
        dampening=group["dampening"],
        nesterov=group["nesterov"],
    )
    factor = float(group["lr"]) / most
    return [_number("rate_over_stable", factor * sharpness, factor * error)]


def _branch_gain(scene: Scene, at: Snapshot) -> list[Found]:
    chart, seen = _glimpsed(scene, at)
    if not chart.anatomy.additions:
        raise _LackingError("the network has no residual additions")
    return [{**row, **_counts(at, _LOOKED_AT)} for row in seen.gains(chart)]


def _forward_rms(scene: Scene, at: Snapshot) -> list[Found]:
    chart, seen = _glimpsed(scene, at)
    return [{**row, **_counts(at, _LOOKED_AT)} for row in seen.sizes(chart)]


def _dead_share(scene: Scene, at: Snapshot) -> list[Found]:
    chart, seen = _glimpsed(scene, at)
    if not chart.anatomy.activations:
        raise _LackingError("the network has no activations")
    return [{**row, **_counts(at, _LOOKED_AT)} for row in seen.dead(chart)]


def _effective_depth(scene: Scene, at: Snapshot) -> list[Found]:
    chart = _chart(scene, at)
    if not chart.anatomy.additions:
        raise _LackingError("the network has no residual additions")
    _switch_off(scene, at)
    paths = path_ensemble(
        at.model,
        _first(at.data, _FOLLOWED),
        norm_mode=scene.norm_mode,
        linearise=not chart.anatomy.piecewise_linear,
        outputs=lambda model, batch: logits_in(run_model(model, batch)),
    )
    depth, error = paths.effective_depth[0], paths.effective_depth_error[0]
    facts = {"linearised": bool(paths.linearised), **_counts(at, _FOLLOWED)}
    return [_number("effective_depth", float(depth), float(error), **facts)]


def _glimpsed(scene: Scene, at: Snapshot) -> tuple[Chart, Glimpse]:
    """Return the signals of one pass, shared by all quantities of a step."""
    chart = _chart(scene, at)
    if scene.last is None or scene.last[0] != at.step:
        batch = _first(at.data, _LOOKED_AT)
        seen = glimpse(at.model, batch, chart=chart, norm_mode=scene.norm_mode)
        scene.last = (at.step, seen)
    return chart, scene.last[1]


def _chart(scene: Scene, at: Snapshot) -> Chart:
    if at.data is None:
        raise _LackingError("no batch is known: pass batches=")
    if scene.chart is None:
        _switch_off(scene, at)
        scene.chart = chart_of(at.model, _first(at.data, _CHARTED))
    return scene.chart


def _switch_off(scene: Scene, at: Snapshot) -> None:
    switch_off_random_layers(at.model, read_batches(at.data)[0], scene.norm_mode)


def _first(data: Any, samples: int) -> Any:
    """Return some samples of the first batch."""
    batch = read_batches(data)[0]
    n = samples_in(batch)
    return batch if n is None or n <= samples else slice_batch(batch, 0, samples)


def _counts(at: Snapshot, most: int) -> dict[str, int]:
    """Return how many samples are measured, and how many there are."""
    counts = [samples_in(batch) or 1 for batch in read_batches(at.data)]
    return {"n_samples": min(most, counts[0]), "of_samples": sum(counts)}


def _paired(data: Any) -> bool:
    batch = read_batches(data)[0]
    return isinstance(batch, list | tuple) and len(batch) == 2


QUANTITIES: dict[str, Callable[[Scene, Snapshot], list[Found]]] = {
    "loss": _loss,
    "sharpness": _sharpness,
    "gradient_norm": _gradient_norm,
    "branch_gain": _branch_gain,
    "effective_depth": _effective_depth,
    "weight_norm": _weight_norm,
    "rate": _rate,
    "forward_rms": _forward_rms,
    "dead_share": _dead_share,
}
