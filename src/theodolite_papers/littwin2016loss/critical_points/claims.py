"""Claims of section 5 on critical points, in the limit and counted."""

import math

import numpy as np

from theodolite.core import (
    Choice,
    Claim,
    PredictedAndMeasured,
    Quantity,
    Read,
    Region,
    Row,
    Test,
    above,
    against,
    below,
    beyond,
    each,
    erratum,
    every,
    inside,
    known,
    largest,
    lowest,
    near,
    our_margin,
    predicted,
)

from .claims_counts import COUNT_CLAIMS

LIMIT = our_margin(
    0.005, "less than half of the least exponent here, 0.0132 at order 3"
)
NOT_LIMIT = above(LIMIT.high, source="ours", why=LIMIT.why)
# Powers of 1/Λ in the approach to Eq 31.
_POWERS = np.array([0.0, 0.5, 0.75, 1.0])
TINY = below(1e-6, source="rounding", why="differences of logarithms, by differences")
NONE = near(0, 1e-9, source="rounding", why="differences of logarithms")
POSITIVE = above(0)
AT_MOST = Region(low=-1e-12, source="rounding", why="ratios of sums")


def extrapolated(order: int, index: int) -> Read:
    r"""Read the excess over Eq 31 at infinite dimension.

    By $a + b\Lambda^{-1/2} + c\Lambda^{-3/4} + d\Lambda^{-1}$ through the last four
    dimensions: eigenvalues are pushed into the bulk, where the law of the smallest has
    a tail $\log P \sim -|s|^3/24 - |s|^{3/2}/(3\sqrt2)$ at $s \sim \Lambda^{1/6}$. The
    error is how much further off those of half the dimension say it is, which is more
    than what is left as long as a doubling leaves less than half.
    """
    rows = predicted("excess", order=order, index=index)

    def read(both: PredictedAndMeasured) -> Quantity:
        table = sorted(rows(both), key=lambda row: row["width"])
        if len(table) < 6:
            return known(str(rows), math.nan, note="six dimensions are wanted")
        (last, bound), (half, _) = _limit(table[-4:]), _limit(table[-6:-2])
        name = f"limit of (1/Λ) log E Crt less Eq 31, order {order}, index {index}"
        return known(name, last, abs(last - half) + bound)

    return read


def _limit(table: list[Row]) -> tuple[float, float]:
    """Return the constant of the series through four rows, and its rounding."""
    widths = np.array([row["width"] for row in table], dtype=float)
    weights = np.linalg.inv(widths[:, None] ** -_POWERS)[0]
    values, errors = (
        np.array([row[key] for row in table]) for key in ("value", "error")
    )
    return float(weights @ values), float(np.abs(weights) @ errors)


def far_from_rival(order: int, index: int) -> Read:
    """Read the distance of the limit from the rival, half the logarithm alone."""
    limit = extrapolated(order, index)

    def read(both: PredictedAndMeasured) -> Quantity:
        excess = limit(both)
        rival = both.predicted.value(quantity="rival_excess", order=order)
        name = f"half the logarithm less that limit, order {order}, index {index}"
        return known(name, rival - excess.value, excess.error)

    return read


def reaches_eq_31(*indices: int) -> Test:
    """Judge whether the exponent is that of Eq 31, and not half the logarithm alone."""

    def of(index: int) -> Test:
        rows = predicted("excess", index=index)
        return against(
            each("order", rows, lambda p: inside(extrapolated(p, index), LIMIT)),
            each("order", rows, lambda p: inside(far_from_rival(p, index), NOT_LIMIT)),
        )

    return every(of(index) for index in indices)


def last_exponent(order: int) -> Read:
    """Read the power of the dimension by which the excess of minima last fell."""
    rows = predicted("excess", order=order, index=0)

    def read(both: PredictedAndMeasured) -> Quantity:
        first, last = sorted(rows(both), key=lambda row: row["width"])[-2:]
        ratio = math.log(last["value"] / first["value"])
        error = sum(abs(row["error"] / row["value"]) for row in (first, last))
        reach = math.log(last["width"] / first["width"])
        return known(
            f"power of the excess, order {order}", ratio / reach, error / reach
        )

    return read


def at_smallest_scale(quantity: str) -> Read:
    """Read the largest value over depths, at the smallest scale."""

    def read(both: PredictedAndMeasured) -> Quantity:
        rows = both.predicted.where(quantity=quantity)
        level = min(rows.levels("beta"))
        table = rows.where(beta=level)
        name = f"largest {quantity.replace('_', ' ')} at scale {level:g}"
        error = float(table.values("error").max())
        return known(name, float(table.values().max()), error)

    return read


def _gap_at_depth(both: PredictedAndMeasured) -> Quantity:
    """Read the largest distance from the limit at the greatest depth."""
    rows = both.predicted.where(quantity="gap_excess")
    table = rows.where(depth=max(rows.levels("depth")))
    error = float(table.values("error").max())
    return known("largest distance from the limit", table.values().max(), error)


FIGURE = Choice(
    what="$p$ from 3 to 100, $\\beta$ from 0.01 to 10, orders from 2 up",
    why="the figure names neither depth nor range; its other panels have $p = 100$",
)

EXPONENTS = Choice(
    what="a smaller exponent of Eq 31 is fewer critical points",
    why="section 5 speaks of the limit of many dimensions; counts at few are judged "
    "apart",
)
ORDERS = Choice(
    what="orders from 2 up: paths of length 1 are left out and the rest normalised",
    why="Eqs 26 to 33 sum from $r = 2$, while Eqs 15 and 16 start at 1",
)

WORDS = {
    "excess": "finite exponent less its limit",
    "exponent_rise": "rise of the exponent with $\\beta$",
    "shallow_end": "exponent at the least $\\beta$",
    "deep_end": "exponent at the greatest $\\beta$ less the plain one",
    "shortfall": "exponent of the plain network less a mixture's",
    "pair_shortfall": "exponent of the plain network less a pair's",
    "residual_shortfall": "exponent of the plain network less the residual one's",
    "chain_gap": "end of the printed chain less the exponent",
    "kept_ratio": "$v''/v'$ with paths of length 1",
    "rise": "rise of the log count with the ratio",
    "slope_gap": "distance of the exponent's slope from its formula",
    "least_slope": "slope of the exponent",
    "ratio_room": "plain ratio less a mixture's",
    "kept_exponent": "exponent with order 1 kept",
    "total": "count of critical points",
    "count": "count of critical points of an index",
    "below": "count of critical points below an energy",
    "euler": "alternating sum over indices",
    "flat_gap": "distance of that sum by Euclidean Hessians from the Euler number",
}
CLAIMS = (
    Claim(
        name="eq-31",
        place="Eq 31",
        statement="For every index $k > 0$ the mean number of critical points grows "
        "like $e^{\\Lambda\\theta}$ with $\\theta = \\frac{1}{2}\\log\\frac{v''}{v'} - "
        "\\frac{v''-v'}{v''+v'}$.",
        test=reaches_eq_31(1, 2),
        rival="half the logarithm alone, which is the exponent of all indices together",
        choices=(
            Choice(
                what="indices 1 and 2, single orders 3 and 5",
                why="their exact means are known at every dimension; all mixtures "
                "enter by $v''/v'$",
            ),
        ),
    ),
    beyond(
        name="minima-too",
        place="Eq 31, made precise",
        statement="Eq 31 holds of minima as well, $k = 0$.",
        test=reaches_eq_31(0),
        rival="half the logarithm alone",
    ),
    beyond(
        name="slow-approach",
        place="Eq 31, made precise",
        statement="The limit is approached from above and slowly: the excess of "
        "$\\frac{1}{\\Lambda}\\log E\\,Crt_0$ falls like $\\Lambda^{-1/2}$, not like "
        "$1/\\Lambda$ as with a constant factor before the exponential.",
        test=every(
            inside(lowest(predicted("excess", index=0)), POSITIVE),
            each(
                "order",
                predicted("excess", index=0),
                lambda order: inside(
                    last_exponent(order),
                    our_margin(0.15, "a third of the way to −1 and to 0", centre=-0.5),
                ),
            ),
        ),
        rival="a constant factor",
    ),
    Claim(
        name="figure-1f-rises",
        place="Figure 1(f)",
        statement="As $\\beta$ grows, and the ensemble gets deeper, the mean number of "
        "low index critical points increases.",
        test=inside(lowest(predicted("exponent_rise")), POSITIVE),
        rival="a maximum at some scale",
        choices=(FIGURE,),
    ),
    beyond(
        name="figure-1f-ends",
        place="Figure 1(f), made precise",
        statement="At the ends the exponent is 0 for $\\beta \\to 0$, where pairs "
        "alone are left, and that of the plain network for $\\beta \\to \\infty$.",
        test=every(
            inside(largest(predicted("shallow_end")), NONE),
            inside(largest(predicted("deep_end")), near(0, 1e-6, source="rounding")),
        ),
        rival="a gap that stays",
    ),
    Claim(
        name="theorem-5",
        place="Theorem 5, Eqs 32, 33, 46 and 47",
        statement="Of all mixtures of orders 2 to $p$ the single order $p$ has the "
        "largest $\\theta_k$, and it alone.",
        test=inside(lowest(predicted("shortfall")), POSITIVE),
        rival="a mixture that has as many critical points",
        choices=(
            Choice(
                what="random mixtures, sparse and dense, and one of 99 % order $p$",
                why="a sample of the simplex; the proof is in the erratum on Eq 48",
            ),
        ),
    ),
    Claim(
        name="mixtures-have-fewer",
        place="After Theorem 5",
        statement="Any heterogeneous mixture has fewer critical points of finite index "
        "than its greatest order alone.",
        test=inside(lowest(predicted("pair_shortfall")), POSITIVE),
        rival="as many, or more",
        choices=(
            EXPONENTS,
            ORDERS,
            Choice(
                what="pairs of order $p$ and each lower one, at shares of 1 to 99 %",
                why="more orders are sampled at theorem 5",
            ),
        ),
    ),
    Claim(
        name="residual-has-fewer",
        place="After Theorem 5",
        statement="Whatever weights a residual network of depth $p$ attains, it has "
        "fewer critical points than the plain network of depth $p$.",
        test=inside(lowest(predicted("residual_shortfall")), POSITIVE),
        rival="as many, or more",
        choices=(EXPONENTS, ORDERS, FIGURE),
    ),
    erratum(
        name="eq-48",
        place="Proof of Theorem 5, Eq 48",
        statement="The largest exponent follows term by term.",
        printed="$\\max\\theta \\leq \\frac{1}{2}\\log\\max_i(V''_{ii}/V'_{ii}) - "
        "\\min_i (V''_{ii}-V'_{ii})/(V''_{ii}+V'_{ii}) = \\frac{1}{2}\\log(p-1) - (1 - "
        "\\frac{2}{p})$",
        corrected="the least of the second term is 0, at $r = 2$, so that the chain "
        "ends at $\\frac{1}{2}\\log(p-1)$; but $\\theta = f(x)$ with $f'(x) = "
        "\\frac{(x-1)^2}{2x(x+1)^2} \\geq 0$, and $x = v''/v'$ is a mean of $r - 1$ "
        "under weights $\\epsilon_r^2 r$, hence at most $p - 1$",
        test=inside(largest(predicted("chain_gap")), NONE),
        corrected_test=every(
            inside(largest(predicted("slope_gap")), TINY),
            inside(lowest(predicted("least_slope")), POSITIVE),
            inside(lowest(predicted("ratio_room")), AT_MOST),
        ),
        rival="a bound that is attained",
    ),
    beyond(
        name="order-one-must-go",
        place="Eqs 15, 16 and 31",
        statement="With paths of length 1 kept, as in Eqs 15 and 16, Eq 31 goes "
        "negative at small $\\beta$, where $v'' < v'$: the mean number of minima would "
        "vanish with dimension, while every field on a sphere has one.",
        test=every(
            inside(at_smallest_scale("kept_ratio"), below(1)),
            inside(at_smallest_scale("kept_exponent"), below(0)),
        ),
        rival="a formula for every mixture",
    ),
    beyond(
        name="gap-to-plain",
        place="After Theorem 5, made precise",
        statement="With depth the exponent of the plain less that of the residual "
        "network tends to $\\frac{1}{2}\\log\\frac{1+\\beta}{\\beta}$: a residual "
        "network of depth $p$ is like a plain one of depth $p\\beta/(1+\\beta)$.",
        test=inside(
            _gap_at_depth, below(1e-3, source="ours", why="a hundredth of the gaps")
        ),
        rival="a gap that grows with depth, or closes",
    ),
    *COUNT_CLAIMS,
)
