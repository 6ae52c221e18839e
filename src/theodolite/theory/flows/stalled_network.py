r"""Normalised residual networks of one unit that never reach their infimum.

One sample $x = 1$, $z_1 = \mathrm{en}(w)$ and blocks $z_{l+1} = z_l +
s\,b_l\,\varphi(s\,a_l z_l)$ with $a_l = \mathrm{wn}(v_l)$, $b_l = \mathrm{wn}(u_l)$,
$\mathrm{wn}(v) = v/\sqrt{\epsilon + v^2}$ and $s < 1$: every hypothesis of theorem 5.1
holds for $0 \le \varphi' \le 1$, $\varphi(0) = 0$.

*Infimum.* All of $|a|, |b|, |z_1|$ are below 1 and $|\varphi(-y)| \le \varphi(y)$
for $y \ge 0$, so $|z_{l+1}| \le |z_l| + s\varphi(s|z_l|)$: outputs stay below $m_L$,
with $m_1 = 1$ and $m_{l+1} = m_l + s\varphi(s\,m_l)$, which they approach as all
weights go to infinity. A decreasing cost has the infimum $c(m_L)$.

*Stall.* $\partial z_{l+1}/\partial u_l \propto \varphi(s\,a_l z_l)$ and $\partial
z_{l+1}/\partial v_l \propto b_l\,\varphi'(s\,a_l z_l) z_l$ vanish exactly where $v_l =
u_l = 0$; and, for $\varphi$ that is zero on the negative axis, on the whole open set
$w > 0$, $v_l < 0$. There $F = z_1$, the branches keep still, and $w$ grows if $c$ falls
up to 1, so that a start in the set never leaves it: $\ell_t$ falls to $c(1) > c(m_L)$,
as one layer does, $\ell_t - c(1) \approx \frac14\sqrt{\epsilon|c'(1)|/(\eta t)}$.
"""

import math
from dataclasses import dataclass
from typing import Literal

from theodolite.core import ConfigError, as_integer

Gate = Literal["tanh", "ramp", "bump"]
Cost = Literal["logistic", "square"]


def _ramp(z: float) -> float:
    """Quadratic up to 1, then of slope 1; its derivative is continuous."""
    return 0.5 * min(max(z, 0.0), 1.0) ** 2 + max(z - 1.0, 0.0)


def _bump(z: float) -> float:
    """Smooth to all orders, of slope at most 4/e^2."""
    return math.exp(-1 / z) if z > 0 else 0.0


_GATES = {"tanh": math.tanh, "ramp": _ramp, "bump": _bump}
_COSTS = ("logistic", "square")


@dataclass(frozen=True, kw_only=True)
class StalledNetwork:
    r"""A network of one unit, as above.

    Assumes: one sample $x = 1$; branches at rest as in the module's text.

    Attributes:
        layers: $L$, the first layer and $L - 1$ blocks.
        gate: $\varphi$: ``"tanh"``, ``"ramp"`` ($z_+^2/2$, then $z - 1/2$) or
            ``"bump"`` ($e^{-1/z}$ for $z > 0$).
        cost: ``"logistic"``, $\log(1 + e^{-F})$, or ``"square"``, $(F - y)^2$.
        target: $y$ of the square cost.
        scale: $s$.
        epsilon: $\epsilon$ of all normalisations.

    References:
        MacDonald et al. (2023), theorem 5.1, to which it is a counterexample.

    Example:
        >>> network = StalledNetwork(layers=2)
        >>> round(network.stall, 7), round(network.infimum, 7)
        (0.3132617, 0.1765354)
    """

    layers: int = 2
    gate: Gate = "tanh"
    cost: Cost = "logistic"
    target: float = 1.5
    scale: float = 0.9
    epsilon: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", as_integer("layers", self.layers, 2))
        if not 0 < self.scale < 1:
            raise ConfigError(
                f"scale is {self.scale}: branches of theorem 5.1 are shorter than "
                "their skip, pass a scale between 0 and 1"
            )
        if not self.epsilon > 0:
            raise ConfigError(f"epsilon is {self.epsilon}: pass a positive one")
        if self.cost == "square" and not self.target > 1:
            raise ConfigError(
                f"target is {self.target}, which one layer nearly reaches: pass one "
                "above 1"
            )

    @property
    def reach(self) -> float:
        r"""$m_L$, the supremum of the outputs, which they never reach."""
        gate, top = _GATES[self.gate], 1.0
        for _ in range(self.layers - 1):
            top += self.scale * gate(self.scale * top)
        return top

    @property
    def stall(self) -> float:
        r"""$c(1)$, the limit of the loss while the branches do not change."""
        return self._at(1.0)

    @property
    def infimum(self) -> float:
        """The infimum of the loss over all weights."""
        reached = min(self.reach, self.target) if self.cost == "square" else self.reach
        return self._at(reached)

    def excess(self, rate: float, steps: int) -> float:
        r"""Return $\frac14\sqrt{\epsilon|c'(1)|/\eta t} \approx \ell_t - c(1)$.

        Assumes: besides, $t \to \infty$; the relative error is of order $t^{-1/2}$
        for starts of order 1.
        """
        if not rate > 0 or not steps > 0:
            raise ConfigError(f"rate {rate} and steps {steps}: pass positive ones")
        slope = 2 * (self.target - 1) if self.cost == "square" else 1 / (1 + math.e)
        return 0.25 * math.sqrt(self.epsilon * slope / (float(rate) * float(steps)))

    def _at(self, output: float) -> float:
        if self.cost == "square":
            return (output - self.target) ** 2
        return math.log1p(math.exp(-output))
