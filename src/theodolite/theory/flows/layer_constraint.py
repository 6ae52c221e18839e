r"""When is every layer its own gradient? $V_k f(x) = \partial f/\partial V_k$.

A bias-free network of one output with unit Frobenius norms is $f(x) = a_k^T V_k b_k$
in each layer, $b_k$ its input and $a_k$ the gradient carried back, so that
$\partial f/\partial V_k = a_k b_k^T$ has rank one. The constraint's relative error is

$$\frac{\|V_k f - a_k b_k^T\|}{|f|} = \sqrt{\frac{\|a_k\|^2\|b_k\|^2}{f^2} - 1},$$

here called its gap: zero if and only if $V_k$ is that rank-one matrix itself.
"""

from dataclasses import dataclass

import numpy as np

from theodolite.core import ConfigError, Numbers, as_integer, as_numbers

# Lower bound on the last layer's gap in the worse of two classes, for features that
# are not negative: the positive and the negative part of V each serve one class.
TWO_CLASS_GAP = float(np.sqrt(0.5))


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerFactors:
    r"""The two factors of $\partial f/\partial V_k$ at one input, layer by layer.

    Attributes:
        output: $f(x)$.
        back: $a_k$ of each layer.
        inputs: $b_k$ of each layer.
    """

    output: float
    back: tuple[np.ndarray, ...]
    inputs: tuple[np.ndarray, ...]

    @property
    def gradient_norms(self) -> np.ndarray:
        r"""$\|\partial f/\partial V_k\| = \|a_k\|\|b_k\|$."""
        pairs = zip(self.back, self.inputs, strict=True)
        return np.array([np.linalg.norm(a) * np.linalg.norm(b) for a, b in pairs])

    @property
    def gaps(self) -> np.ndarray:
        r"""$\|V_k f - \partial f/\partial V_k\| / |f|$ of each layer."""
        if self.output == 0:
            return np.full(len(self.back), np.inf)
        square = (self.gradient_norms / self.output) ** 2 - 1
        return np.sqrt(np.clip(square, 0, None))


def layer_factors(
    weights: tuple[Numbers, ...] | list[Numbers], x: Numbers, *, relu: bool = True
) -> LayerFactors:
    """Return the factors of every layer's gradient; the slope of ReLU at 0 is 0.

    Args:
        weights: One matrix per layer, the last of one row, each of Frobenius norm 1.
        x: One input.
        relu: Whether the hidden layers have ReLUs.

    References:
        Poggio & Liao (2020), CBMM Memo 112, equations 50 to 52.

    Example:
        >>> factors = layer_factors([[[1.0, 0.0]], [[1.0]]], [0.6, 0.8])
        >>> round(factors.output, 6), factors.gaps.round(6)
        (0.6, array([1.333333, 0.      ]))
    """
    layers = [as_numbers("weights", w, "rows", "columns") for w in weights]
    state = as_numbers("x", x, "inputs")
    _check_chain(layers, len(state))
    inputs, gates = [], []
    for place, layer in enumerate(layers):
        inputs.append(state)
        state = layer @ state
        hidden = relu and place < len(layers) - 1
        gates.append((state > 0).astype(float) if hidden else np.ones_like(state))
        state = state * gates[-1]
    carried, back = np.ones(1), []
    for layer, gate in zip(reversed(layers), reversed(gates), strict=True):
        back.append(carried * gate)
        carried = layer.T @ back[-1]
    return LayerFactors(
        output=float(state[0]), back=tuple(reversed(back)), inputs=tuple(inputs)
    )


def least_first_layer_gap(inputs: Numbers) -> float:
    r"""Return the least root mean square gap of a first layer over samples.

    For any $a_n$, $\|V f_n - a_n x_n^T\| \ge |f_n|\,\|V(I - \hat x_n\hat x_n^T)\|$,
    and over unit $V$ the mean square of the right side is at least
    $1 - \lambda_{max}(\frac{1}{N}\sum_n \hat x_n\hat x_n^T)$, which vanishes only for
    collinear inputs.

    Args:
        inputs: One sample per row, none of them zero.

    Example:
        >>> round(least_first_layer_gap([[1.0, 0.0], [0.0, 1.0]]), 6)
        0.707107
        >>> least_first_layer_gap([[1.0, 0.0], [-3.0, 0.0]])
        0.0
    """
    x = as_numbers("inputs", inputs, "samples", "width")
    norms = np.linalg.norm(x, axis=1, keepdims=True)
    if not len(x) or not norms.all():
        raise ConfigError(
            f"{int((norms == 0).sum())} of {len(x)} inputs are zero and have no "
            "direction: drop them and pass at least one"
        )
    unit = x / norms
    top = np.linalg.eigvalsh(unit.T @ unit / len(x))[-1]
    return float(np.sqrt(max(0.0, 1.0 - float(top))))


def projection_gap(rank: int, cosine: float = 1.0) -> float:
    r"""Return the gap of equal layers $P/\sqrt r$, $P$ an orthogonal projection.

    $\sqrt{r/c^2 - 1}$ in the first layer of a linear network whose last layer is along
    its features, $c$ the cosine between input and image of $P$. With $P = I$ it is the
    gap of orthogonal matrices, $\sqrt{p - 1}$ at best.

    Args:
        rank: $r$, from 1 up.
        cosine: $c$, above 0 and up to 1.

    Example:
        >>> projection_gap(1), round(projection_gap(3), 6)
        (0.0, 1.414214)
    """
    if not 0 < cosine <= 1:
        raise ConfigError(f"cosine is {cosine}: pass a number above 0 and up to 1")
    return float(np.sqrt(as_integer("rank", rank, 1) / cosine**2 - 1))


def diagonal_solution(x: Numbers, layers: int) -> tuple[float, np.ndarray]:
    r"""Return output and weights of a diagonal network that meets the constraint.

    $f = \sum_i x^i \prod_k V_k^i$ with equal layers:
    $V^i = (f/|x^i|)^{1/(L-2)}$ (times the sign of $x^i$ in one layer) and
    $f = (\sum_i |x^i|^{-2/(L-2)})^{-(L-2)/2}$ by the unit norms.

    Args:
        x: One input without zeros.
        layers: $L$, from 3 up; for two the entries of $x$ would have to be equal.

    Returns:
        $f$ and the weights of one layer.

    Example:
        >>> output, weights = diagonal_solution([0.9, 0.5, 0.3], 4)
        >>> round(output, 6), weights.round(6)
        (0.155172, array([0.415227, 0.557086, 0.719195]))
    """
    given = np.abs(as_numbers("x", x, "inputs"))
    power = as_integer("layers", layers, 3) - 2
    if not given.size or not given.all():
        raise ConfigError(
            f"x has {int((given == 0).sum())} zeros among {given.size} entries: drop "
            "them, their weights are 0"
        )
    output = float(np.sum(given ** (-2 / power)) ** (-power / 2))
    return output, (output / given) ** (1 / power)


def _check_chain(layers: list[np.ndarray], width: int) -> None:
    """Raise if the shapes of matrices do not chain, or a norm is not 1."""
    shapes = [layer.shape for layer in layers]
    into = [width, *(rows for rows, _ in shapes)]
    if not layers or into[-1] != 1 or [c for _, c in shapes] != into[:-1]:
        raise ConfigError(
            f"matrices of shapes {shapes} for {width} inputs make no network of one "
            "output: pass them in order, the last of one row"
        )
    off = max(abs(float(np.linalg.norm(layer)) - 1) for layer in layers)
    if off > 1e-9:
        raise ConfigError(
            f"a matrix has a Frobenius norm {off:.2g} away from 1: divide each by its "
            "norm"
        )
