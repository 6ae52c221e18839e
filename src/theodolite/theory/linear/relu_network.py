r"""Exact gradient and Hessian of piecewise linear n-shortcut networks, at any weights.

ReLU has no curvature away from its kink, so with its gates frozen a network is
multilinear in its matrices: the Hessian is a Gauss–Newton part, and a residual part
that joins two different matrices only.

Notation: for layer $k$ and one sample, $a_k$ its input, $u_k = W_k a_k$ its output,
$P_k = \partial f/\partial u_k$, $S_{kl} = \partial a_k/\partial u_l$ for $k > l$, and
$e = f - y$; $E$ is the mean over samples. Weights have shape (depth, width, width), in
the order applied; inputs x and targets y have shape (m, width).
"""

from dataclasses import dataclass

import numpy as np

from theodolite.core import (
    ConfigError,
    Numbers,
    ShortcutBlueprint,
    as_numbers,
)

from .linear_network import paired_samples
from .zero_weights import activation


def relu_gradient(
    blueprint: ShortcutBlueprint, weights: Numbers, x: Numbers, y: Numbers
) -> tuple[float, np.ndarray]:
    r"""Return the half mean square and its gradient, shape (depth, width, width).

    Assumes: a ``ShortcutBlueprint`` with identity before and after units, identity or
    ReLU between their matrices, no biases; the slope of ReLU at 0 is 0.

    Example:
        >>> plan = ShortcutBlueprint(width=1, depth=2, mid="relu")
        >>> loss, slope = relu_gradient(plan, np.ones((2, 1, 1)), np.ones((1, 1)),
        ...                             np.zeros((1, 1)))
        >>> loss, slope.ravel()
        (2.0, array([2., 2.]))
    """
    outside = (blueprint.pre, blueprint.post) == ("identity", "identity")
    if not outside or blueprint.mid not in ("identity", "relu") or blueprint.bias:
        raise ConfigError(
            f"activations ({blueprint.pre}, {blueprint.mid}, {blueprint.post}) and "
            f"bias={blueprint.bias}: this gradient is for ReLU or identity between the "
            "matrices of a unit and no biases; measure others with instruments"
        )
    weights, x, y = _checked(blueprint, weights, x, y)
    n, relu = blueprint.shortcut, blueprint.mid == "relu"
    inputs, gates, state, entrance = [], [], x, x
    for layer, weight in enumerate(weights):
        if layer % n == 0:
            entrance = state
        gate = np.ones_like(state)
        if relu and layer % n:
            gate = (state > 0).astype(state.dtype)
            state = state * gate
        inputs.append(state)
        gates.append(gate)
        state = state @ weight.T
        if layer % n == n - 1 and blueprint.skip:
            state = state + entrance
    error = state - y
    loss = float(np.square(error).sum()) / (2 * len(x))
    gradient, back = np.empty_like(weights), error / len(x)
    carried = back
    for layer in reversed(range(len(weights))):
        if layer % n == n - 1:
            carried = back
        gradient[layer] = back.T @ inputs[layer]
        back = (back @ weights[layer]) * gates[layer]
        if layer % n == 0 and blueprint.skip:
            back = back + carried
    return loss, gradient


_CHUNK_BYTES = 2**26


@dataclass(frozen=True, eq=False)
class HessianParts:
    r"""A Hessian as the sum of its two parts.

    Attributes:
        gauss_newton: $E[J^\top J]$, positive semidefinite.
        residual: The part that the error $e$ adds; zero within every layer.
        margin: Least $|z|$ at the input of a ReLU; smaller changes switch no gate.
    """

    gauss_newton: np.ndarray
    residual: np.ndarray
    margin: float

    @property
    def whole(self) -> np.ndarray:
        """The Hessian."""
        return self.gauss_newton + self.residual


def relu_hessian(
    blueprint: ShortcutBlueprint, weights: Numbers, x: Numbers, y: Numbers
) -> np.ndarray:
    r"""Exact Hessian of a ReLU network, shape (depth·width², same).

    $H_{kl} = E[a_k a_l^\top \otimes P_k^\top P_l] + E[(S_{kl} \otimes P_k^\top
    e\,a_l^\top)K]$ for $k > l$, $K$ the commutation matrix, and the first term alone
    for $k = l$: ``linear_hessian`` with a product for each sample.

    Assumes: a ``ShortcutBlueprint`` with identity or ReLU at every position and no
    biases, half mean square loss, no sample on a kink; parameters in the order (layer,
    column, row).

    References:
        Bishop (1992), Exact calculation of the Hessian matrix for the multilayer
        perceptron, with skips and frozen gates.

    Example:
        >>> x, y = np.array([[1.0], [-1.0]]), np.zeros((2, 1))
        >>> plan = ShortcutBlueprint(width=1, depth=2, mid="relu")
        >>> relu_hessian(plan, np.ones((2, 1, 1)), x, y)
        array([[0.5, 1.5],
               [1.5, 0.5]])
    """
    return relu_hessian_parts(blueprint, weights, x, y).whole


def relu_hessian_parts(
    blueprint: ShortcutBlueprint, weights: Numbers, x: Numbers, y: Numbers
) -> HessianParts:
    """Return the Gauss–Newton and the residual part of :func:`relu_hessian`.

    Cost: $O(m L^2 d^4)$ for $L$ layers, in products of matrices; samples are taken in
    chunks, so that memory beyond the result stays bounded.

    Assumes: as :func:`relu_hessian`.
    """
    names = (blueprint.pre, blueprint.mid, blueprint.post)
    if blueprint.bias or not set(names) <= {"identity", "relu"}:
        raise ConfigError(
            f"activations {names} and bias={blueprint.bias}: frozen gates suffice for "
            "identity and relu without biases only; measure this one with "
            "instruments.hessian"
        )
    weights, x, y = _checked(blueprint, weights, x, y)
    depth, d = len(weights), x.shape[1]
    # Entries (layer, column, row) twice; only k ≥ l is filled, then mirrored.
    shape = (depth, d, d, depth, d, d)
    newton, residual = np.zeros(shape), np.zeros(shape)
    margin = np.inf
    size = max(1, _CHUNK_BYTES // (8 * depth * (depth + 2) * d * d))
    for part in (slice(start, start + size) for start in range(0, len(x), size)):
        flow = _forward(blueprint, weights, x[part])
        margin = min(margin, flow.margin)
        after = _backward(blueprint, weights, flow)
        between = _between(blueprint, weights, flow)
        pulled = np.einsum("mkoi,mo->mki", after, flow.output - y[part])
        _add(newton, residual, flow.inputs, after, between, pulled)
    return HessianParts(
        _mirrored(newton / len(x)), _mirrored(residual / len(x)), float(margin)
    )


@dataclass(frozen=True, eq=False)
class _Flow:
    """Inputs of layers (m, L, d), gates after them and before each unit, output."""

    inputs: np.ndarray
    gates: np.ndarray
    entries: np.ndarray
    output: np.ndarray
    margin: float


def relu_spectrum_near_zero(
    first_weights: Numbers, x: Numbers, y: Numbers
) -> np.ndarray:
    r"""Return the ascending eigenvalues of a 2-shortcut ReLU network near zero.

    To leading order the Hessian couples row $w_j$ of a unit's first matrix to column
    $j$ of its second through $M(w_j) = \frac1m\sum 1[w_j \cdot x > 0]\,(x - y)x^\top$,
    so the spectrum is $\pm$ the singular values of these half-space moments. Since
    $M(w) + M(-w) = M$, the ½M of the smooth formula is only their average over signs.

    Assumes: half mean square loss, skip connections, $\sigma_{pre} = \sigma_{post}
    = id$, weights small enough that units do not move the signal.

    Args:
        first_weights: First matrix of each unit, shape (units, width, width).
        x: Inputs, shape (m, width).
        y: Targets, shape (m, width).

    References:
        Corrects the reading of Li et al. (2016), Demystifying ResNet, Eq 9 with
        assumption 3 for ReLU.

    Example:
        >>> x = np.array([[1.0], [-1.0]])
        >>> relu_spectrum_near_zero(np.ones((1, 1, 1)), x, 0 * x)
        array([-0.5,  0.5])
    """
    x, y = paired_samples(x, y)
    d = x.shape[1]
    rows = as_numbers("first_weights", first_weights, "units", d, d).reshape(-1, d)
    slope = activation("relu").slope
    singular = [
        np.linalg.svd(((x - y) * slope(x @ w)[:, None]).T @ x / len(x))[1] for w in rows
    ]
    positive = np.concatenate(singular)
    return np.sort(np.concatenate([-positive, positive]))


def _forward(blueprint: ShortcutBlueprint, weights: np.ndarray, x: np.ndarray) -> _Flow:
    n, shape = blueprint.shortcut, (len(x), len(weights), x.shape[1])
    inputs, gates = np.empty(shape), np.empty(shape)
    entries = np.empty((len(x), blueprint.units, x.shape[1]))
    state, margin = x, np.inf
    for r in range(blueprint.units):
        entries[:, r], nearest = _gate(blueprint.pre, state)
        z, margin = entries[:, r] * state, min(margin, nearest)
        for layer in range(r * n, (r + 1) * n):
            inputs[:, layer] = z
            last = layer == (r + 1) * n - 1
            u = z @ weights[layer].T
            name = blueprint.post if last else blueprint.mid
            gates[:, layer], nearest = _gate(name, u)
            z, margin = gates[:, layer] * u, min(margin, nearest)
        state = state + z if blueprint.skip else z
    return _Flow(inputs, gates, entries, state, margin)


def _gate(name: str, z: np.ndarray) -> tuple[np.ndarray, float]:
    # Exact zeros come from layers that are shut off, and stay zero.
    moved = z[z != 0] if name != "identity" else z[:0]
    nearest = float(np.abs(moved).min()) if moved.size else np.inf
    return activation(name).slope(z), nearest


def _backward(
    blueprint: ShortcutBlueprint, weights: np.ndarray, flow: _Flow
) -> np.ndarray:
    """Return P of every sample and layer, shape (m, L, d, d)."""
    m, depth, d = flow.inputs.shape
    after = np.empty((m, depth, d, d))
    rest, n = np.broadcast_to(np.eye(d), (m, d, d)), blueprint.shortcut
    for r in reversed(range(blueprint.units)):
        inner = rest
        for layer in reversed(range(r * n, (r + 1) * n)):
            after[:, layer] = inner * flow.gates[:, layer, None, :]
            inner = after[:, layer] @ weights[layer]
        inner = inner * flow.entries[:, r, None, :]
        rest = rest + inner if blueprint.skip else inner
    return after


def _between(
    blueprint: ShortcutBlueprint, weights: np.ndarray, flow: _Flow
) -> np.ndarray:
    """Return S[k, l] of every sample, shape (L, L, m, d, d), zero for k ≤ l."""
    m, depth, d = flow.inputs.shape
    n, between = blueprint.shortcut, np.zeros((depth, depth, m, d, d))
    for start in range(depth):
        home = start // n
        # From the output of layer `start` to the end of its unit, then on.
        carried = flow.gates[:, start, :, None] * np.eye(d)
        for layer in range(start + 1, (home + 1) * n):
            between[layer, start] = carried
            carried = flow.gates[:, layer, :, None] * (weights[layer] @ carried)
        for r in range(home + 1, blueprint.units):
            inner = flow.entries[:, r, :, None] * carried
            for layer in range(r * n, (r + 1) * n):
                between[layer, start] = inner
                inner = flow.gates[:, layer, :, None] * (weights[layer] @ inner)
            carried = carried + inner if blueprint.skip else inner
    return between


def _add(
    newton: np.ndarray,
    residual: np.ndarray,
    inputs: np.ndarray,
    after: np.ndarray,
    between: np.ndarray,
    pulled: np.ndarray,
) -> None:
    """Add a chunk to the lower blocks, each a product over samples."""
    m, depth, d = inputs.shape
    flipped = after.transpose(1, 0, 3, 2)
    for k in range(depth):
        for l in range(k + 1):  # noqa: E741 — the letter of the formula
            signal = _outer(inputs[:, k], inputs[:, l])
            spread = (flipped[k] @ after[:, l]).reshape(m, d * d)
            block = (signal.T @ spread).reshape(d, d, d, d)  # (j, b, i, a)
            newton[k, :, :, l] += block.transpose(0, 2, 1, 3)
            if l < k:
                error = _outer(pulled[:, k], inputs[:, l])
                path = between[k, l].reshape(m, d * d)
                block = (path.T @ error).reshape(d, d, d, d)  # (j, a, i, b)
                residual[k, :, :, l] += block.transpose(0, 2, 3, 1)


def _outer(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a[:, :, None] * b[:, None, :]).reshape(len(a), -1)


def _mirrored(blocks: np.ndarray) -> np.ndarray:
    depth, d = blocks.shape[:2]
    for k in range(depth):
        blocks[:k, :, :, k] = blocks[k, :, :, :k].transpose(2, 3, 4, 0, 1)
    size = depth * d * d
    return blocks.reshape(size, size)


def _checked(
    blueprint: ShortcutBlueprint, weights: Numbers, x: Numbers, y: Numbers
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return weights and samples as arrays; raise if their shapes do not fit."""
    weights = as_numbers("weights", weights, "depth", "width", "width")
    x, y = paired_samples(x, y)
    wanted = (blueprint.depth, blueprint.width, blueprint.width)
    if weights.shape != wanted or x.shape[1] != blueprint.width:
        raise ConfigError(
            f"weights of shape {weights.shape} and data of width {x.shape[1]}: the "
            f"blueprint wants {wanted} and width {blueprint.width}"
        )
    return weights, x, y
