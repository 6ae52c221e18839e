r"""Largest stable learning rate of an optimiser on a quadratic.

Along an eigenvector with eigenvalue $\lambda$ each rule is a linear recursion of second
order; it contracts while both roots lie inside the unit circle, which the criterion of
Jury turns into a bound on the rate $\eta$:

- gradient descent: $\eta\lambda < 2$;
- heavy ball, $m \leftarrow \beta m + (1 - \tau)g$, $w \leftarrow w - \eta m$:
  $w_{t+1} - (1 + \beta - \eta(1-\tau)\lambda)w_t + \beta w_{t-1} = 0$, so
  $\eta\lambda < 2(1 + \beta)/(1 - \tau)$;
- Nesterov, $w \leftarrow w - \eta((1 - \tau)g + \beta m)$:
  $\eta\lambda < 2(1+\beta)/((1+2\beta)(1-\tau))$, of torch's SGD $\tau = 0$, of NAdam
  $\tau = \beta$;
- Adam with $\tau = \beta_1$ and the preconditioner held fixed: as heavy ball, with
  $\lambda$ of $P^{-1}H$; $38$ at $\beta_1 = 0.9$, as Cohen et al. (2022) found.

References:
    Cohen et al. (2022), Adaptive gradient methods at the edge of stability, eq. (2).
"""


def bound(
    *, momentum: float = 0.0, dampening: float = 0.0, nesterov: bool = False
) -> float:
    r"""Return the largest stable product of rate and curvature.

    Args:
        momentum: $\beta$.
        dampening: $\tau$.
        nesterov: Whether the momentum is Nesterov's.

    Example:
        >>> bound(), bound(momentum=0.5), round(bound(momentum=0.9, dampening=0.9), 9)
        (2.0, 3.0, 38.0)
    """
    ahead = 1 + 2 * momentum if nesterov else 1.0
    return 2 * (1 + momentum) / (ahead * (1 - dampening))
