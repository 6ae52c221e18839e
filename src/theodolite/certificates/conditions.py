"""Check which hypotheses of the theorems hold for a network, and why."""

import math
from collections.abc import Iterator

import numpy as np

from theodolite.core import (
    AffineLayer,
    BatchNormLayer,
    ConfigError,
    ConvolutionLayer,
    NonlinearLayer,
    ResidualLayer,
    Row,
    Rows,
    SystemLayer,
    unknown_name,
)
from theodolite.theory import CostBounds, Extent, layer_bounds, nonlinearity_bounds

from .recognition import RecognisedSystem

SMOOTH, REGULAR, GLOBAL = "Theorem 4.5", "Theorem 4.7", "Theorem 5.1"
THEOREMS = {"4.5": (SMOOTH,), "4.7": (REGULAR,), "5.1": (SMOOTH, REGULAR, GLOBAL)}


# A hypothesis in words; why it fails, with what to try, or nothing; why it holds.
Hypothesis = tuple[str, str, str]


def conditions(system: RecognisedSystem, data: np.ndarray, cost: CostBounds) -> Rows:
    """Return the hypotheses of theorems 4.5, 4.7 and 5.1, judged for all parameters.

    Only the layers of the system count; ``cost`` holds bounds on all possible outputs.
    """
    judged = {
        SMOOTH: _smooth(system, cost),
        REGULAR: _regular(system, data),
        GLOBAL: _global(system),
        "Theorem 5.1, corrected": [_corrected(system)],
    }
    return Rows([
        {"theorem": theorem, "hypothesis": words, "holds": not fails,
         "why": fails or holds}
        for theorem, hypotheses in judged.items()
        for words, fails, holds in hypotheses
    ])  # fmt: skip


def failing(name: str, hypotheses: Rows) -> list[Row]:
    """Return the hypotheses of a theorem, such as ``4.7``, that fail."""
    if name not in THEOREMS:
        raise unknown_name("theorem", name, THEOREMS)
    asked = THEOREMS[name]
    return [row for row in hypotheses if row["theorem"] in asked and not row["holds"]]


def require(name: str, hypotheses: Rows) -> None:
    """Raise if a theorem does not apply to the system or data."""
    for row in failing(name, hypotheses):
        raise ConfigError(
            f"Theorem {name} does not apply, since it wants {row['hypothesis']} and "
            f"{row['why']}"
        )


def _smooth(system: RecognisedSystem, cost: CostBounds) -> Iterator[Hypothesis]:
    rough, loose, norms = [], [], []
    for name, layer in _named_layers(system):
        if isinstance(layer, NonlinearLayer):
            why = nonlinearity_bounds(layer.activation).why
            rough += [f"layer {name}: {why}"] if why else []
        elif isinstance(layer, AffineLayer | ConvolutionLayer):
            loose += [f"layer {name} {why}" for why in _looseness(layer)]
        elif isinstance(layer, BatchNormLayer):
            norms.append(f"layer {name} is one")
    yield (
        "nonlinearities whose slope is Lipschitz (in print: continuous)",
        _listed(rough, "use tanh, sigmoid, softplus, GELU or SiLU"),
        "each nonlinearity's second derivative is bounded",
    )
    yield (
        "affine layers without bias, normalised by weight or entry with eps > 0",
        _listed(loose, "normalise them, or give a radius"),
        "each matrix is bounded with two derivatives",
    )
    yield (
        "no batch norm, but behind covariances bounded away from zero",
        _listed(norms, "the bound counts the batch norm's own eps instead"),
        "there is none",
    )
    yield (
        "a cost whose gradient is bounded and Lipschitz on the outputs",
        "" if cost.gradient < math.inf else f"{cost.why}: bound the outputs",
        f"its norm is at most {cost.gradient:.4g}, its constant {cost.curvature:.4g}",
    )


def _regular(system: RecognisedSystem, data: np.ndarray) -> Iterator[Hypothesis]:
    flat = data.reshape(len(data), -1)
    n, inputs = flat.shape
    yield (
        f"no more samples than the {inputs} inputs",
        "" if n <= inputs else f"{n} samples came: pass at most {inputs}",
        f"{n} samples of {inputs} numbers",
    )
    values = np.linalg.svd(flat, compute_uv=False)
    least = float(values[-1]) if n <= inputs else 0.0
    limit = max(n, inputs) * np.finfo(float).eps * float(values[0])
    fails = (
        f"the smallest singular value of the data is {least:.3g}, which rounding "
        "cannot tell from zero: drop samples that depend on others"
    )
    yield (
        "linearly independent samples",
        fails if least <= limit else "",
        f"their smallest singular value is {least:.4g}",
    )
    yield (
        "an affine first layer whose matrix moves freely with its parameters",
        _first_fails(system.blueprint.layers[0], system.names[0]),
        "its derivative has full rank at all parameters",
    )
    yield (
        "later layers that are residual blocks without more features behind",
        _blocks_fail(system),
        "each skip has singular values 1",
    )
    words = "branches whose Jacobian has a norm below one everywhere"
    yield words, *_branches(system)


def _first_fails(layer: SystemLayer, name: str) -> str:
    if not isinstance(layer, AffineLayer):
        return f"layer {name} is of kind {layer.kind}: begin with an affine layer"
    if layer.parameterisation == "length_direction":
        return f"layer {name} loses rank where a length is zero: use eps instead"
    return ""


def _blocks_fail(system: RecognisedSystem) -> str:
    shapes = system.blueprint.shapes
    wrong = []
    for place, layer in enumerate(system.blueprint.layers[1:], start=1):
        name = system.names[place]
        if not isinstance(layer, ResidualLayer):
            wrong.append(f"layer {name} is of kind {layer.kind}")
        elif math.prod(shapes[place + 1]) > math.prod(shapes[place]):
            wrong.append(f"layer {name} has more features behind than before")
    return _listed(wrong, "put each layer behind the first into a residual block")


def _branches(system: RecognisedSystem) -> tuple[str, str]:
    shapes, wrong, largest = system.blueprint.shapes, [], 0.0
    for place, layer in enumerate(system.blueprint.layers):
        if not isinstance(layer, ResidualLayer):
            continue
        anywhere = Extent(samples=1, shape=shapes[place])
        norm = layer_bounds(layer, anywhere).input_slope - 1
        largest = max(largest, norm)
        if not norm < 1:
            size = "unbounded" if norm == math.inf else f"bounded by {norm:.4g} alone"
            wrong.append(f"that of layer {system.names[place]} is {size}")
    advice = "scale the branches' matrices down"
    return _listed(wrong, advice), f"all are at most {largest:.4g}"


def _global(system: RecognisedSystem) -> Iterator[Hypothesis]:
    first, name = system.blueprint.layers[0], system.names[0]
    fails = f"layer {name} is not: use AffineLayer(parameterisation='entry_norm')"
    entry = isinstance(first, AffineLayer) and first.parameterisation == "entry_norm"
    yield (
        "a first layer that is entry-normalised and without bias",
        "" if entry and not getattr(first, "bias", True) else fails,
        "it is",
    )
    yield (
        "branches of normalised matrices of norm below one and slopes of at most one",
        _listed(list(_branch_parts(system)), "scale or replace them"),
        "each matrix and each nonlinearity keeps to it",
    )


def _corrected(system: RecognisedSystem) -> Hypothesis:
    layers = len(system.blueprint.layers)
    fails = (
        f"there are {layers} layers, for which the conclusion can fail though all "
        "hypotheses hold: watch the first layer's weights"
    )
    return (
        "one layer, or weights of the first layer that stay bounded in training",
        fails if layers > 1 else "",
        "there is one layer",
    )


def _branch_parts(system: RecognisedSystem) -> Iterator[str]:
    for name, layer in _named_layers(system):
        if ".branch." not in f".{name}":
            continue
        if isinstance(layer, NonlinearLayer):
            slope = nonlinearity_bounds(layer.activation).slope
            if not slope <= 1:
                yield f"layer {name} has slopes up to {slope:.4g}"
        elif not isinstance(layer, AffineLayer | ConvolutionLayer):
            yield f"layer {name} is of kind {layer.kind}"
        elif layer.bias or not layer.weight_bound < 1:
            size = layer.weight_bound
            bound = "unbounded" if size == math.inf else f"of norm up to {size:.4g}"
            yield f"layer {name} is {bound}" + (" and has a bias" * layer.bias)


def _looseness(layer: AffineLayer | ConvolutionLayer) -> Iterator[str]:
    if layer.bias:
        yield "has a bias, which is unbounded"
    if layer.parameterisation == "plain":
        yield "has weights that are not normalised"
    elif layer.parameterisation == "length_direction":
        yield "has unbounded lengths, and directions that may vanish without eps"


def _named_layers(system: RecognisedSystem) -> Iterator[tuple[str, SystemLayer]]:
    def within(name: str, layer: SystemLayer) -> Iterator[tuple[str, SystemLayer]]:
        yield name, layer
        if isinstance(layer, ResidualLayer):
            for place, one in enumerate(layer.branch):
                yield from within(f"{name}.branch.{place}", one)

    for name, layer in zip(system.names, system.blueprint.layers, strict=True):
        yield from within(name, layer)


def _listed(faults: list[str], advice: str) -> str:
    if not faults:
        return ""
    more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
    return f"{faults[0]}{more}: {advice}"
