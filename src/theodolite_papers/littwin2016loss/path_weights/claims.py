"""Claims of sections 3 and 4 on the weights of path lengths."""

from theodolite.core import (
    Choice,
    Claim,
    Read,
    Rows,
    Select,
    above,
    against,
    below,
    between,
    every,
    exact,
    highest,
    inside,
    largest,
    largest_distance,
    lowest,
    measured,
    near,
    predicted,
    smallest,
)

from ..shared.rows import MORE_THAN_ROUNDING
from .claims_beyond import BEYOND
from .claims_errata import ERRATA
from .config import CHANCES, FIGURE_DEPTH

NONE = near(0, 0)
LIMIT = Choice(
    what="a limit is judged by a bound that tends to it, at all depths computed",
    why="no number is taken at infinity",
)
SMALL = below(1e-12, source="ours", why="weights beyond it change no double")


def _deepest(rows: Rows) -> Rows:
    return rows.where(depth=max(rows.levels("depth")))


def _from_network(formula: str) -> Read:
    """Read the distance of a network's measured weights from a formula."""
    return largest_distance(
        predicted(formula), measured("epsilon"), ("length",), relative=False
    )


def _peak(beta: float) -> Select:
    """Select the lengths of greatest weight in figure 1."""
    return measured("peak_least", depth=FIGURE_DEPTH, beta=beta)


PRINTED = (
    Claim(
        name="weights-of-the-network",
        place="Eqs 14 and 16",
        statement="The terms of length $r$ of $\\hat Y$ have weights $\\epsilon_r = "
        "\\frac{1}{z}\\binom{p-1}{r-1}\\beta^r$ with $\\beta = \\rho n "
        "C/\\sqrt{\\Lambda}$ and $\\sum_r \\epsilon_r^2 = 1$.",
        test=against(
            inside(
                _from_network("epsilon"),
                below(1e-12, source="rounding", why="quotients of sums of products"),
            ),
            inside(_from_network("other_epsilon"), MORE_THAN_ROUNDING),
        ),
        rival="$\\binom{p}{r}$, which the proofs put for simplicity",
    ),
    Claim(
        name="chance-is-the-scale",
        place="Section 3, below Theorem 2",
        statement="With $C = 1/\\sqrt{n}$ and $\\Lambda = n$, $\\beta = \\rho$.",
        test=against(
            exact(measured("beta_less_chance", setting="paper")),
            inside(
                smallest(measured("beta_less_chance", setting="distinct")),
                MORE_THAN_ROUNDING,
            ),
        ),
        rival="the same scale with all weights different",
    ),
    Claim(
        name="below-half-depth",
        place="Section 3, below Theorem 2",
        statement="At that initialisation the greatest weight is in the limit at less "
        "than half of the depth.",
        test=inside(
            highest(predicted("peak_share", lambda row: row["chance"] in CHANCES)),
            below(0.5),
        ),
        rival="half of the depth, as for $\\rho = 1$",
        choices=(
            LIMIT,
            Choice(
                what="the limit is that of the argument over $p$",
                why="printed is $\\lim \\arg\\max_r \\epsilon_r < p/2$, with $p$ in it",
            ),
            Choice(
                what="gates are open with a chance of 0.1 to 0.9",
                why="with all gates open the limit is one half and not below it",
            ),
        ),
        asides=lambda both: {
            "share of the depth, all gates open": (
                both.predicted.where(quantity="peak_share").value(chance=1.0)
            )
        },
    ),
    Claim(
        name="peak-limit",
        place="Theorem 1, Eq 17",
        statement="$\\lim_{p\\to\\infty} \\frac{1}{p}\\arg\\max_r \\epsilon_r = "
        "\\beta/(1+\\beta)$.",
        test=every(
            inside(largest(measured("peaks_apart")), NONE),
            inside(
                largest(predicted("peak_off_by")),
                between(0, 1, source="ours", why="a length is a whole number"),
            ),
        ),
        rival="half of the depth, whatever $\\beta$",
        choices=(LIMIT,),
    ),
    Claim(
        name="entropy-limit",
        place="Proof of Theorem 1, Eq 35",
        statement="$\\lim_{p\\to\\infty} \\frac{1}{p}\\log\\binom{p}{\\alpha p} = "
        "H(\\alpha)$.",
        test=inside(
            largest(measured("entropy_scaled")),
            below(1, source="ours", why="Stirling's next term, $\\log(p)/2p$"),
        ),
        rival="a distance from the entropy that does not fall as $\\log(p)/p$",
        choices=(LIMIT,),
    ),
    Claim(
        name="narrow-band",
        place="Theorem 2, Eq 18",
        statement="For $\\alpha_1 < \\beta/(1+\\beta) < \\alpha_2$ the weight $\\sum "
        "\\epsilon_r^2$ over $\\alpha_1 p \\leq r \\leq \\alpha_2 p$ tends to 1.",
        test=inside(largest(predicted("deep_missing").keeping(_deepest)), SMALL),
        rival="a share that stays outside of the band",
        choices=(
            LIMIT,
            Choice(
                what="four scales, with one band each", why="the theorem is for any"
            ),
        ),
    ),
    Claim(
        name="tail-bound",
        place="Proof of Theorem 2, Eq 36",
        statement="The lower tail is at most $\\alpha_1 p$ times its last term, "
        "$\\alpha_1 p \\binom{p}{\\alpha_1 p}^2 \\beta^{2\\alpha_1 p}/z^2$.",
        test=inside(
            highest(measured("tail_over_bound")),
            below(1 + 1e-12, source="rounding", why="a quotient of whole numbers"),
        ),
        rival="a tail whose last term is not its greatest",
    ),
    Claim(
        name="legendre-asymptotic",
        place="Proof of Theorem 2",
        statement="$P_p(x) \\sim \\frac{1}{\\sqrt{2\\pi p}} (x+\\sqrt{x^2-1})^{p+1/2} "
        "(x^2-1)^{-1/4}$ for $x > 1$.",
        test=inside(
            largest(measured("asymptotic_scaled")),
            below(2, source="ours", why="the next term is of order $1/p$"),
        ),
        rival="a quotient of the two that does not tend to 1 as $1/p$",
        choices=(LIMIT,),
    ),
    Claim(
        name="every-length-attained",
        place="Lemma 4",
        statement="For every $1 \\leq k \\leq p$ there is a scale $C$ with "
        "$\\arg\\max_r \\epsilon_r = k$.",
        test=every(
            inside(largest(measured("inside_missed")), NONE),
            inside(largest(measured("outside_missed")), NONE),
        ),
        rival="a length that never weighs most",
    ),
    Claim(
        name="ends-at-the-printed-scale",
        place="Proof of Lemma 4",
        statement="With $\\binom{p}{r}$ for simplicity and $\\beta^* = "
        "\\binom{p}{p/2}$, $\\arg\\max_r \\epsilon_r(\\beta^*) = p$ and $\\arg\\max_r "
        "\\epsilon_r(1/\\beta^*) = 1$.",
        test=every(
            inside(largest(measured("printed_last_missed")), NONE),
            inside(largest(measured("printed_first_missed")), NONE),
        ),
        rival="a scale that is not large enough",
        choices=(
            Choice(
                what="even $p$, and a tie counts",
                why="$p/2$ is a whole number, and at $p = 2$ both lengths tie",
            ),
        ),
    ),
    Claim(
        name="multiplier-favours-depth",
        place="Below Eq 19",
        statement="The multiplier $r$ of Eq 19 makes the derivative more influenced by "
        "deeper networks than the loss is.",
        test=inside(lowest(measured("multiplier_gain")), above(0)),
        rival="a derivative by paths of the same lengths",
        choices=(
            Choice(
                what="mean lengths under squared weights, $r\\,\\epsilon_r$ and "
                "$\\epsilon_r$",
                why="how influence is weighed is not said",
            ),
        ),
    ),
    Claim(
        name="large-scale-and-depth",
        place="Section 3, below Eq 16",
        statement="For constant $p$ and large enough $\\beta$, $\\arg\\max_r "
        "\\epsilon_r = p$; for constant $\\beta$ and large enough $p$ it is less than "
        "$p$.",
        test=every(
            inside(largest(measured("depth_less_peak_large")), NONE),
            inside(smallest(measured("depth_less_peak_below")), above(0)),
            inside(lowest(predicted("depth_less_peak")), above(0)),
        ),
        rival="a peak that stays where it is",
        choices=(
            Choice(
                what="$\\beta = p$ is large enough, and $p - 3/2$ is not",
                why="the peak is at $p$ alone exactly where $\\beta > p - 1$",
            ),
        ),
    ),
    Claim(
        name="scale-shifts-the-ensemble",
        place="Section 4, item 1 for the law, Figure 1(a–c)",
        statement="Under the law of Eq 16 a global scaling of the weights changes the "
        "ensemble from shallow to deep: at depth 100 $\\beta = 0.1$ and $0.5$ have "
        "their greatest weight in the lower half, $\\beta = 2$ in the upper one.",
        test=every(
            inside(highest(_peak(0.1)), below(FIGURE_DEPTH / 2)),
            inside(highest(_peak(0.5)), below(FIGURE_DEPTH / 2)),
            inside(lowest(_peak(2.0)), above(FIGURE_DEPTH / 2)),
        ),
        rival="a peak at half of the depth for every scale",
    ),
)

WORDS = {
    "epsilon": "weight of a length",
    "beta_less_chance": "$\\beta$ less the chance of a gate",
    "peak_share": "length of the greatest weight over the depth",
    "peak_least": "length of the greatest weight",
    "peaks_apart": "depths at which the formula misses the greatest weight",
    "entropy_scaled": "distance from the entropy, times the depth",
    "deep_missing": "weight outside of the band",
    "tail_over_bound": "lower tail over its bound",
    "asymptotic_scaled": "distance from the asymptotic, times the depth",
    "inside_missed": "lengths not attained at the scale",
    "outside_missed": "lengths attained outside of their interval",
    "last_missed": "depths whose last length is not the greatest",
    "multiplier_gain": "mean length by the derivative less that by the loss",
    "tied_gain": "mean length by the derivative with $z$ less that by the loss",
    "depth_less_peak": "depth less the length of the greatest weight",
    "legendre_z_gap": "distance of the normaliser from Legendre's",
    "not_affine": "distance of the mean loss from affine functions",
    "slope": "slope of a weight in the scale",
    "printed_slope": "the printed slope",
    "other_epsilon": "weights with another scale",
    "peak_off_by": "distance of the greatest weight from its place",
    "printed_last_missed": (
        "depths whose last length is not greatest at the printed scale"
    ),
    "printed_first_missed": (
        "depths whose first length is not greatest at the printed scale"
    ),
    "depth_less_peak_large": (
        "depth less the length of the greatest weight, large scale"
    ),
    "depth_less_peak_below": (
        "depth less the length of the greatest weight, below the bound"
    ),
    "tie_off_by": "distance of the tie from $x$",
    "maximisers": "lengths that share the greatest weight",
    "ends_missed": "ends of intervals without a tie",
    "same_scale_gap": "distance from the mirror at the same scale",
    "missing_over_bound": "weight outside of the band over its bound",
    "sum_asymptotic_scaled": "distance of the sum from its asymptotic, times the depth",
    "sum_without_root_scaled": "distance without the root, times the depth",
    "tie_at_last_missed": "depths without a tie at the last length",
    "mean_off_by": "distance of the mean length from its limit",
    "moment_gap": "distance of both moments from theory",
    "direct_z_gap": "distance of the normaliser from theory",
}
CLAIMS = (*PRINTED, *ERRATA, *BEYOND)
