r"""How fast regularity may vanish: the arithmetic of the proof of theorem 5.1.

Gradient descent with $\eta < 2/\beta$ and $\|\nabla\ell\|^2 \ge \mu_t(\ell_t - \ell^*)$
has $\ell_t - \ell^* \le \prod_{i<t}(1 - \alpha\mu_i)(\ell_0 - \ell^*)$, which says
something in the limit if and only if $\sum\mu_i$ diverges. $\mu_t$ goes with the
least *eigenvalue* of $DF\,DF^T$, the square of a singular value, hence with
$P'(w_t)^2$ of the first layer's parameterisation $P$.

In the worst case a weight moves outwards all the time, $\dot w = C P'(w)$. Then
$\frac{d}{dt}P(w) = C P'(w)^2$, so that
$$\int_0^\infty P'(w(t))^2\,dt = \frac{P(\infty) - P(w_0)}{C}:$$
what the proof needs to diverge is how far $P$ moves, which is finite for *every*
bounded monotone parameterisation. For $P' \sim w^{-q}$, bounded for $q > 1$, this
reads $w \sim t^{1/(q+1)}$ and $P'^2 \sim t^{-2q/(q+1)}$; entry normalisation has
$q = 3$, hence $t^{1/4}$ and $t^{-3/2}$.
"""

import numpy as np

from theodolite.core import ConfigError, Numbers, as_integer, as_numbers, check_number

# The growth is a loop, of a second for so many steps.
_MOST_STEPS = 10_000_000


def descent_gain(rate: float, smoothness: float) -> float:
    r"""Return $\alpha = \eta(1 - \beta\eta/2)$.

    A step lowers $\ell$ by at least $\alpha\|\nabla\ell\|^2$, from $\ell(\theta - \eta
    g) \le \ell - \eta\|g\|^2 + \frac\beta2\eta^2\|g\|^2$.

    Assumes: $\nabla\ell$ is $\beta$-Lipschitz along the step.

    References:
        MacDonald et al. (2023), theorem 5.1 and equation 37, which print
        $\eta(1 - 2\eta/\beta)$.

    Example:
        >>> round(descent_gain(0.45, 4.0), 12)
        0.045
    """
    _positive("rate", rate)
    _positive("smoothness", smoothness)
    return float(rate) * (1 - float(smoothness) * float(rate) / 2)


def kernel_exponent(decay: float) -> float:
    r"""Return $2q/(q+1)$, the power of $1/t$ with which $P'(w_t)^2$ vanishes.

    It exceeds 1, so that the sum converges, exactly where $q > 1$.

    Assumes: a weight pushed outwards by a force bounded away from 0 and infinity,
    and $P' \sim w^{-q}$.

    Example:
        >>> kernel_exponent(3.0)
        1.5
        >>> kernel_exponent(1.0)
        1.0
    """
    _positive("decay", decay)
    q = float(decay)
    return 2 * q / (q + 1)


def worst_growth(
    steps: int, rate: float, force: float, epsilon: float = 1.0
) -> np.ndarray:
    r"""Return $r_0 = 1$ and $r_{t+1} = r_t + \eta C\epsilon r_t^{-3}$ up to ``steps``.

    With $h = \eta C\epsilon$, $r_{t+1}^4 = r_t^4 + 4h + 6h^2 r_t^{-4} + \dots$, so that
    $r_t^4 = 1 + 4ht + O(\log t)$.

    Assumes: weights from $[-1, 1]$ and a gradient of at most $C\epsilon r^{-3}$.

    References:
        MacDonald et al. (2023), below equation 42.

    Example:
        >>> worst_growth(2, rate=0.5, force=2.0)
        array([1.   , 2.   , 2.125])
    """
    push = _push(rate, force, epsilon)
    sizes = [1.0]
    for _ in range(as_integer("steps", steps, 1, _MOST_STEPS)):
        sizes.append(sizes[-1] + push / sizes[-1] ** 3)
    return np.array(sizes)


def growth_law(
    steps: Numbers, rate: float, force: float, epsilon: float = 1.0
) -> np.ndarray:
    r"""Return $(1 + 4\eta C\epsilon t)^{1/4}$, the flow at the time $\eta t$.

    References:
        MacDonald et al. (2023), below equation 42, which compare $r_t$ with the flow
        at the time $t$.

    Example:
        >>> growth_law([0.0, 3.75], rate=0.5, force=2.0)
        array([1., 2.])
    """
    t = as_numbers("steps", steps, "steps")
    return (1 + 4 * _push(rate, force, epsilon) * t) ** 0.25


def _push(rate: float, force: float, epsilon: float) -> float:
    for name, value in (("rate", rate), ("force", force), ("epsilon", epsilon)):
        _positive(name, value)
    return float(rate) * float(force) * float(epsilon)


def surviving_factor(exponent: float, scale: float, steps: int) -> float:
    r"""Return $\prod_{t=1}^{T}(1 - s\,t^{-p})$.

    As $T$ grows it vanishes if and only if $p \le 1$.

    Assumes: $0 < s < 1$.

    Example:
        >>> round(surviving_factor(1.5, 0.5, 1_000_000), 7)
        0.2173633
    """
    count = as_integer("steps", steps, 1)
    if not 0 < scale < 1:
        raise ConfigError(f"scale is {scale}: pass one between 0 and 1")
    t = np.arange(1, count + 1, dtype=np.float64)
    return float(np.exp(np.log1p(-float(scale) * t ** -float(exponent)).sum()))


def kernel_floor(
    inputs: Numbers, radius: float, epsilon: float = 1.0, branches: Numbers = ()
) -> float:
    r"""Return a lower bound on $\lambda(DF)$ while first-layer weights stay bounded.

    $\sigma_{\min}(X)^2\,\epsilon^2(\epsilon + R^2)^{-3}\prod_l (1 - \kappa_l)^2$: the
    first term of Prop 4.6 with $|w| \le R$ and branches of Lipschitz constant
    $\kappa_l$.

    Assumes: an entry-normalised first layer, linearly independent data, and square
    residual blocks with isometric skips and $\kappa_l < 1$.

    Args:
        inputs: One sample per row.
        radius: $R$, the largest magnitude of a first-layer weight.
        epsilon: $\epsilon$ of the normalisation.
        branches: $\kappa_l$ of each block.

    References:
        MacDonald et al. (2023), proposition 4.6, lemmas B.4 and B.5, equation 36.

    Example:
        >>> kernel_floor([[2.0, 0.0]], 0.0, branches=[0.5])
        1.0
    """
    x = as_numbers("inputs", inputs, "samples", "features")
    kappa = as_numbers("branches", branches, "blocks")
    _positive("epsilon", epsilon)
    if np.any(kappa < 0) or np.any(kappa >= 1):
        raise ConfigError(
            f"branches are {kappa.tolist()}: pass Lipschitz constants from 0 to below 1"
        )
    check_number("radius", radius)
    samples, features = x.shape
    if samples > features:
        raise ConfigError(
            f"inputs are {samples} samples of {features} features, which depend on one "
            "another: pass at most as many samples as features"
        )
    values = np.linalg.svd(x, compute_uv=False)
    if values[-1] <= np.finfo(float).eps * max(x.shape) * values[0]:
        raise ConfigError(
            f"inputs have rank below {samples}: pass linearly independent samples"
        )
    steep = float(epsilon) ** 2 / (float(epsilon) + float(radius) ** 2) ** 3
    return float(float(values[-1]) ** 2 * steep * np.prod((1 - kappa) ** 2))


def longest_path(excess: float, regularity: float) -> float:
    r"""Return $4\sqrt{(\ell_0 - \ell^*)/m}$, an upper bound on the length of descent.

    With $\eta \le 1/\beta$ a step $\eta g$ lowers $e = \ell - \ell^*$ by at least
    $\frac\eta2\|g\|^2$, hence $\sqrt e$ by $\frac\eta2\|g\|^2/(2\sqrt e) \ge
    \frac14\sqrt m\,\|\eta g\|$: the lengths of all steps sum to the bound. Where
    $\|g\|^2 \ge m\,e$ holds within $R$ of the start alone and the path is shorter than
    $R$, it never leaves.

    Assumes: $\eta \le 1/\beta$, and $\|\nabla\ell\|^2 \ge m(\ell - \ell^*)$ along the
    path.

    Args:
        excess: $\ell_0 - \ell^*$.
        regularity: $m$, such as $\mu$ of the cost times :func:`kernel_floor`.

    Example:
        >>> longest_path(0.25, 4.0)
        1.0
    """
    _positive("regularity", regularity)
    if not excess >= 0:
        raise ConfigError(f"excess is {excess}: pass a loss above its infimum")
    return 4 * float(np.sqrt(float(excess) / float(regularity)))


def _positive(name: str, value: float) -> None:
    if not value > 0:
        raise ConfigError(f"{name} is {value}: pass a positive one")
