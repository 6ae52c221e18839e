"""Our own claims on the weights, beyond the paper."""

from theodolite.core import (
    Row,
    above,
    against,
    below,
    beyond,
    every,
    exact,
    highest,
    inside,
    largest,
    lowest,
    measured,
    near,
    predicted,
    smallest,
)

from ..shared.rows import MORE_THAN_ROUNDING, growth
from .config import BETAS

NONE = near(0, 0)


def _at_ties(row: Row) -> bool:
    """Return whether the theorem's hypothesis is met."""
    beta = BETAS[row["beta"]]
    return (beta * row["depth"] / (1 + beta)).denominator == 1


def _elsewhere(row: Row) -> bool:
    return not _at_ties(row)


BEYOND = (
    beyond(
        name="tie-under-the-hypothesis",
        place="Theorem 1, made precise",
        statement="Where $\\frac{\\beta}{1+\\beta}p = x \\in N$, as the theorem "
        "assumes, the greatest weight is not at one length: $\\epsilon_x = "
        "\\epsilon_{x+1}$ exactly. Where it is not whole there is one, $\\lceil x "
        "\\rceil$.",
        test=every(
            inside(
                smallest(
                    measured("maximisers", _at_ties).called("maximisers, x whole")
                ),
                near(2, 0),
            ),
            inside(largest(measured("tie_off_by", _at_ties)), NONE),
            inside(largest(measured("maximisers", _elsewhere)), near(1, 0)),
            inside(largest(measured("peaks_apart")), NONE),
        ),
        rival="one length of greatest weight",
    ),
    beyond(
        name="mirror-turns-the-scale",
        place="Proof of Theorem 2, made precise",
        statement="The mirror $r \\to p+1-r$ sends $\\beta$ to $1/\\beta$, so that "
        "upper tails at $\\beta < 1$ are lower tails at $\\beta > 1$, which the sketch "
        "leaves out. Both vanish for every $\\beta$, as $\\epsilon_r/\\sum\\epsilon$ "
        "is binomial: what is missing is at most $2p\\,e^{-2(p-1)\\delta^2}$.",
        test=against(
            every(
                inside(
                    largest(
                        measured("mirror_gap").called("distance from the mirror at 1/β")
                    ),
                    below(1e-12, source="rounding", why="shares of whole numbers"),
                ),
                inside(
                    largest(predicted("missing_over_bound")),
                    below(1 + 1e-8, source="rounding", why="the trivial bound is 1"),
                ),
            ),
            inside(
                smallest(measured("same_scale_gap", lambda row: row["beta"] != 1)),
                MORE_THAN_ROUNDING,
            ),
        ),
        rival="weights that are their own mirror at the same scale",
    ),
    beyond(
        name="normaliser-asymptotic",
        place="Proof of Theorem 2, carried out",
        statement="With Legendre's asymptotic $\\sum_{r=0}^p "
        "\\binom{p}{r}^2\\beta^{2r} \\sim (1+\\beta)^{2p+1}/\\sqrt{4\\pi p\\beta}$, at "
        "$\\beta = 1$ and beyond it too.",
        test=against(
            inside(
                largest(measured("sum_asymptotic_scaled")),
                below(2, source="ours", why="the next term is of order $1/p$"),
            ),
            inside(smallest(measured("sum_without_root_scaled")), above(2)),
        ),
        rival="the same without the root of $4\\pi p\\beta$",
    ),
    beyond(
        name="depth-less-one-suffices",
        place="Proof of Lemma 4, made precise",
        statement="The greatest weight is at $p$ from $\\beta = p - 1$ on, where $p$ "
        "and $p - 1$ tie; $\\binom{p}{p/2}$ is far more than it takes.",
        test=every(
            inside(largest(measured("last_missed")), NONE),
            inside(largest(measured("tie_at_last_missed")), NONE),
            inside(smallest(measured("depth_less_peak_below")), above(0)),
        ),
        rival="a scale below $p - 1$ that does as well",
    ),
    beyond(
        name="multiplier-with-normaliser",
        place="Below Eq 19, made precise",
        statement="With $z$ the multiplier is $r - \\sum_s s\\,\\epsilon_s^2$: the "
        "derivative weighs longer paths than the loss at $\\beta < 1$, and shorter "
        "ones at $\\beta > 1$.",
        test=every(
            inside(lowest(measured("tied_gain", lambda r: r["beta"] < 1)), above(0)),
            inside(highest(measured("tied_gain", lambda r: r["beta"] > 1)), below(0)),
        ),
        rival="longer paths at every scale, as with the multiplier $r$",
    ),
    beyond(
        name="band-of-root-depth",
        place="Theorem 2, made precise",
        statement="The band is of width $O(\\sqrt{p})$: under $\\epsilon_r^2$ the "
        "variance of the length tends to half of the binomial one, "
        "$p\\beta/2(1+\\beta)^2$, and the mean stays within 1 of $p\\beta/(1+\\beta)$.",
        test=every(
            *(
                inside(
                    growth(predicted("log_spread", beta=beta), "depth"),
                    near(0.5, 0.01, source="ours", why="an exponent to two digits"),
                )
                for beta in BETAS
            ),
            inside(
                highest(predicted("variance_over_half")),
                below(1.1, source="ours", why="half, and not the whole"),
            ),
            inside(
                lowest(predicted("variance_over_half")),
                above(0.9, source="ours", why="half, and not the whole"),
            ),
            inside(
                largest(predicted("mean_off_by")),
                below(1, source="ours", why="one length, at every depth"),
            ),
            exact(measured("moment_gap")),
        ),
        rival="the binomial law itself, of twice the variance",
    ),
    beyond(
        name="normaliser-by-legendre",
        place="Eq 37, made right for Eq 16",
        statement="For the weights of Eq 16 $z^2 = "
        "\\beta^2(1-\\beta^2)^{p-1}P_{p-1}(\\frac{1+\\beta^2}{1-\\beta^2})$, also for "
        "$\\beta > 1$, and $\\binom{2p-2}{p-1}$ at $\\beta = 1$.",
        test=every(exact(measured("legendre_z_gap")), exact(measured("direct_z_gap"))),
        rival="a sum of squares that the polynomial misses beyond $\\beta = 1$",
    ),
    beyond(
        name="losses-are-not-affine",
        place="Lemma 3, Eq 15",
        statement="The form $C_1 + C_2\\hat Y$ is a model of the losses, and no "
        "identity: averaged over gates as coins, neither the hinge nor the absolute "
        "loss is an affine function of the mean output.",
        test=inside(smallest(measured("not_affine")), MORE_THAN_ROUNDING),
        rival="losses on a line over the mean output",
    ),
)
