r"""The norm of a classifier under gradient flow of the square loss, outputs fixed.

Notation: $g_n = \rho f_n$ with $f_n$ the outputs of the normalised network, labels
$y_n = \pm 1$, weight decay $\lambda$ on the sum of squares,
$\sum_n (\rho f_n - y_n)^2 + \lambda\rho^2$. On the mean loss PyTorch's ``weight_decay``
$w$ is $\lambda = N w/2$. Weight normalisation writes $w = g\,v/\|v\|$; batch
normalisation maps the batch $x$ of a unit to $\hat x = (x - \mu)/s$,
$s = \sqrt{\sigma^2 + \epsilon}$.
"""

import numpy as np
from scipy.integrate import quad, solve_ivp
from scipy.optimize import root_scalar

from theodolite.core import ConfigError, Numbers, as_integer, as_numbers, check_number


def weight_norm_speeds(
    length: float, vector: Numbers, speed: Numbers
) -> tuple[float, np.ndarray]:
    r"""Return $\dot g$ and $\dot v$ that a speed $\dot w$ of the weights induces.

    $\dot g = v^T\dot w/\|v\|$ and $\dot v = \frac{g}{\|v\|}(I - vv^T/\|v\|^2)\,\dot w$.

    References:
        Poggio & Liao (2020), equations 12 and 13.

    Example:
        >>> weight_norm_speeds(3.0, [0.0, 2.0], [1.0, 1.0])
        (1.0, array([1.5, 0. ]))
    """
    check_number("length", length)
    v = as_numbers("vector", vector, "weights")
    w = as_numbers("speed", speed, len(v))
    norm = float(np.linalg.norm(v))
    if not norm:
        raise ConfigError("the vector is zero and has no direction: pass another")
    unit = v / norm
    along = float(unit @ w)
    return along, length / norm * (w - along * unit)


def batch_norm_jacobian(
    batch: Numbers, eps: float = 0.0, *, centred: bool = True
) -> np.ndarray:
    r"""Return $\partial\hat x/\partial x$ of one unit over a batch.

    $s^{-1}(I - \frac{1}{N}11^T - \frac{1}{N}\hat x\hat x^T)$; without ``centred`` the
    middle term is left out, which neglects the derivative of the mean. Its
    singular values are $1/s$ ($N - 2$ times), $\epsilon/s^3$ and 0.

    References:
        Poggio & Liao (2020), appendix A.2, corrected.

    Example:
        >>> jacobian = batch_norm_jacobian([1, 2, 4, 7], eps=0.1)
        >>> np.linalg.svd(jacobian, compute_uv=False)[[0, 2]].round(8)
        array([0.4323377 , 0.00808108])
    """
    check_number("eps", eps)
    x = as_numbers("batch", batch, "samples")
    away = x - x.mean()
    s = np.sqrt(np.mean(away**2) + eps)
    if not s > 0:
        raise ConfigError("all samples are alike: pass a batch that varies, or eps > 0")
    shape = np.eye(len(x)) - np.outer(away / s, away / s) / len(x)
    return (shape - (1 / len(x) if centred else 0.0)) / s


_RTOL, _ATOL = 1e-12, 1e-14
_AT_REST = 1e-11  # of the equilibrium


def norm_equilibrium(outputs: Numbers, labels: Numbers, decay: float = 0.0) -> float:
    r"""Return $\rho_{eq} = \sum y_n f_n / (\lambda + \sum f_n^2)$.

    References:
        Poggio & Liao (2020), equations 7, 9 and 31.

    Example:
        >>> norm_equilibrium([0.5, 0.3, -0.4, 0.2], [1, 1, -1, 1], decay=0.1)
        2.1875
    """
    check_number("decay", decay)
    pull, square = _moments(outputs, labels)
    return pull / (decay + square)


def norm_multiplier(scale: float, outputs: Numbers, labels: Numbers) -> float:
    r"""Return the multiplier $\nu = -\sum_n (\rho^2 f_n^2 - \rho\,y_n f_n)$.

    At $\rho_{eq}$ it is $\lambda\rho_{eq}^2$. The unit sphere attracts the flow of
    the weights where $\nu > 0$ and repels it, on both sides, where $\nu < 0$.

    References:
        Poggio & Liao (2020), section 2.3.

    Example:
        >>> round(norm_multiplier(2.1875, [0.5, 0.3, -0.4, 0.2], [1, 1, -1, 1]), 9)
        0.478515625
    """
    check_number("scale", scale)
    pull, square = _moments(outputs, labels)
    return scale * pull - scale**2 * square


def frozen_norm(
    start: float, outputs: Numbers, labels: Numbers, times: Numbers, decay: float = 0.0
) -> np.ndarray:
    r"""Return $\rho(t)$ of Eq 5 for outputs that do not change.

    $\rho_{eq} + (\rho_0 - \rho_{eq})\,e^{-2(\lambda + \sum f_n^2)t}$.

    References:
        Poggio & Liao (2020), equation 5.

    Example:
        >>> frozen_norm(0.01, [0.5, 0.3, -0.4, 0.2], [1, 1, -1, 1], [1.0], decay=0.1)
        array([1.58207378])
    """
    check_number("start", start)
    _, square = _moments(outputs, labels)
    limit = norm_equilibrium(outputs, labels, decay)
    t = as_numbers("times", times, "times")
    return limit + (start - limit) * np.exp(-2 * (decay + square) * t)


def layered_norm(
    start: float, layers: int, outputs: Numbers, labels: Numbers, times: Numbers
) -> np.ndarray:
    r"""Return $\rho(t)$ of $L$ layers of equal norm without normalisation, Eq 28.

    $\dot\rho = 2L\rho^{2-2/L}(\sum y_n f_n - \rho\sum f_n^2)$ for outputs that do not
    change: logistic growth for $L = 2$ alone. Integrated in $\ln\rho$ by an embedded
    Runge–Kutta pair of order 8.

    References:
        Poggio & Liao (2020), appendix D.

    Example:
        >>> f, y = [0.5, 0.3, -0.4, 0.2], [1, 1, -1, 1]
        >>> layered_norm(0.01, 2, f, y, [1.0]).round(6)
        array([1.326129])
    """
    pull, square = _moments(outputs, labels)
    depth = as_integer("layers", layers, 1)
    t = as_numbers("times", times, "times")
    _check_start(start)

    def speed(_: float, log: np.ndarray) -> np.ndarray:
        rho = np.exp(log)
        return 2 * depth * rho ** (1 - 2 / depth) * (pull - rho * square)

    rest = pull / square

    def moving(_: float, log: Numbers) -> float:
        return abs(float(np.exp(log)[0]) - rest) - _AT_REST * abs(rest)

    moving.terminal = True  # type: ignore[attr-defined]
    path = solve_ivp(
        speed,
        (0.0, float(np.max(t))),
        [np.log(start)],
        method="DOP853",
        t_eval=np.sort(t),
        events=moving,
        rtol=_RTOL,
        atol=_ATOL,
    )
    # Near the equilibrium an explicit pair would take smaller and smaller steps.
    norms = np.full(len(t), rest)
    if len(path.t):
        norms[: len(path.t)] = np.exp(path.y[0])
    return norms[np.argsort(np.argsort(t))]


def transient_time(
    start: float, layers: int, outputs: Numbers, labels: Numbers, share: float = 0.5
) -> float:
    r"""Return the time at which $\rho$ of Eq 28 reaches a share of its equilibrium.

    $T = \int_{\rho_0}^{\rho_T} \frac{d\rho}{2L\rho^{2-2/L}(\sum y f - \rho\sum f^2)}$
    by quadrature in $\ln\rho$.

    References:
        Poggio & Liao (2020), appendix D.

    Example:
        >>> f, y = [0.5, 0.3, -0.4, 0.2], [1, 1, -1, 1]
        >>> round(transient_time(0.1, 2, f, y), 4)
        0.5743
    """
    pull, square = _moments(outputs, labels)
    depth = as_integer("layers", layers, 1)
    _check_start(start)
    end = share * pull / square
    if not 0 < share < 1 or not start < end:
        raise ConfigError(
            f"share {share} of the equilibrium {pull / square:.4g} from {start}: pass "
            "a share between 0 and 1 that lies above the start"
        )

    def slowness(log: float) -> float:
        rho = np.exp(log)
        return rho ** (2 / depth - 1) / (2 * depth * (pull - rho * square))

    return float(quad(slowness, np.log(start), np.log(end), epsrel=1e-12)[0])


def aligned_norm(start: float, angle: float) -> float:
    r"""Return the norm at which a unit that sees one input comes to rest without decay.

    With $f = \cos\theta$ the normalised flow keeps $\rho^2 + 2\ln\sin\theta$, and
    rests where $\rho\cos\theta = 1$: the limit depends on $\theta_0$ even as
    $\rho_0 \to 0$, and is 1, the least norm, for $\theta_0 = 0$ alone.

    Example:
        >>> round(aligned_norm(0.01, 1.4), 6)
        1.15789
    """
    _check_start(start)
    if not 0 < angle < np.pi / 2:
        raise ConfigError(
            f"angle {angle}: pass one between 0 and a right angle, at which the unit "
            "answers"
        )
    kept = start**2 + 2 * np.log(np.sin(angle))

    def missed(log_excess: float) -> float:
        square = 1 + np.exp(log_excess)
        return square + log_excess - np.log(square) - kept

    log_excess = root_scalar(missed, bracket=(-700.0, 50.0), xtol=1e-14).root
    return float(np.sqrt(1 + np.exp(log_excess)))


def _moments(outputs: Numbers, labels: Numbers) -> tuple[float, float]:
    f = as_numbers("outputs", outputs, "samples")
    y = as_numbers("labels", labels, len(f))
    if not np.any(f):
        raise ConfigError("all outputs are zero: pass those of a network that answers")
    return float(y @ f), float(f @ f)


def _check_start(start: float) -> None:
    if not start > 0:
        raise ConfigError(f"start {start} of the norm: pass a positive number")
