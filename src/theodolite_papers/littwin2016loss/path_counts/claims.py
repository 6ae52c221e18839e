"""Claims of sections 2 and 3 on paths, up to Eq 13."""

from theodolite.core import (
    Choice,
    Claim,
    Grade,
    Region,
    Test,
    above,
    against,
    at_each,
    below,
    beyond,
    erratum,
    every,
    exact,
    inside,
    largest,
    largest_distance,
    lowest,
    mean,
    measured,
    near,
    predicted,
    smallest,
)

NONE = near(0, 0)
ONE = near(1, 1e-12, source="rounding", why="quotients of sums of whole numbers")
NOT_BELOW = Region(low=-1e-12, source="rounding", why="shares of whole numbers")
EVEN = Choice(
    what="A3: each node has each weight on equally many of the edges that leave it, or "
    "each unit on equally many of those that reach it",
    why="'close to being evenly distributed' is made exact, in both ways",
)


def _counted(
    quantity: str,
    network: str,
    formula: str = "",
    by: tuple[str, ...] = ("depth", "length"),
) -> Test:
    """Judge whether each count of a network equals the formula."""
    gap = largest_distance(
        predicted(formula or quantity, network=network),
        measured(quantity, network=network),
        by,
        relative=False,
    )
    return inside(gap, NONE)


def _many_open(network: str) -> Test:
    """Judge whether networks of every depth have several open paths per input."""
    paths = measured("open_paths", network=network)
    return at_each("depth", paths, lambda rows: inside(mean(rows), above(1)), least=2)


WORDS = {
    "output_gap": "distance of the sum over paths from the output",
    "mean_gap": "distance of the mean output from the sum over paths",
    "coefficient_gap": "distance of coefficients from the counts",
    "above_floor": "second moment less the lower bound",
    "approximate_gap": "distance of the mean output from Eq 13",
    "correlation_least": "correlation of two variables",
    "share_least": "second moment over the upper bound",
    "dependent_over_floor": "second moment over the lower bound, dependent inputs",
    "negative_outputs": "number of negative outputs",
    "negative_means": "share of negative mean outputs",
    "ungated_gap": "distance of the sum without gates from the output",
    "mass": "number of paths of a length",
    "total": "number of paths",
    "one_chance_gap": "distance of the mean output with one chance a path",
    "mean_terms_gap": "distance of the mean terms from sums over paths",
    "repeats": "multiplicity of a product",
    "repeats_least": "least multiplicity of a product",
    "repeats_most": "greatest multiplicity of a product",
    "repeats_spread": "difference of multiplicities",
    "below_ceiling": "upper bound less the second moment",
    "share_most": "second moment over the upper bound",
    "unnormalised_gap": "distance of the mean output from Eq 13 without its factor",
}
CLAIMS = (
    Claim(
        name="plain-output-is-paths",
        place="Eq 1, Definition 1",
        statement="The output of a plain ReLU network is the sum over $\\gamma = "
        "\\prod_i n_i$ paths from each input, of the input times whether all units on "
        "the path are active times the product of its weights.",
        test=every(
            exact(
                measured("output_gap", network="plain"),
                rival=measured("ungated_gap", network="plain"),
            ),
            _counted("mass", "plain"),
            _counted("total", "plain", by=("depth",)),
        ),
        rival="the sum over all paths, active or not",
    ),
    Claim(
        name="residual-output-is-paths",
        place="Eqs 7 and 8",
        statement="The output of the residual network is the same sum over paths of "
        "lengths $1$ to $p$, of which those of length $r$ take $r$ layers and pass the "
        "others by their skips.",
        test=every(
            exact(
                measured("output_gap", network="residual"),
                rival=measured("ungated_gap", network="residual"),
            ),
            exact(measured("coefficient_gap", network="residual")),
        ),
        rival="the sum over all paths, open or not",
    ),
    Claim(
        name="paths-by-length",
        place="Below Eq 8, Definition 2",
        statement="There are $\\gamma_r = \\binom{p-1}{r-1} n^r$ paths of length $r$ "
        "from each input, and $\\psi_r = d\\,\\gamma_r$ from all.",
        test=every(
            _counted("mass", "residual"), _counted("total", "residual", by=("depth",))
        ),
        rival="$\\binom{p}{r}$ in place of $\\binom{p-1}{r-1}$",
    ),
    Claim(
        name="inputs-are-shared",
        place="Section 2, A1",
        statement="A1, an input variable of its own for every path, does not hold: "
        "each input is that of many paths.",
        test=every(_many_open("plain"), _many_open("residual")),
        rival="one path from each input, or none, as where gates are closed",
        choices=(
            Choice(
                what="paths that gates leave open count, in the mean over inputs drawn",
                why="of all paths the number is fixed by the width",
            ),
        ),
    ),
    Claim(
        name="assumptions-do-not-hold",
        place="Section 2, below Eq 4",
        statement="The assumptions do not hold of networks as they are.",
        test=against(
            every(
                inside(largest(measured(f"{name}_holds", network="residual")), NONE)
                for name in ("A1", "A2", "A3")
            ),
            every(
                inside(
                    smallest(measured(f"{name}_holds", network="cyclic")), near(1, 0)
                )
                for name in ("A2", "A3")
            ),
        ),
        rival="a network with shared weights, for which A2 and A3 are made to hold",
        choices=(
            Choice(
                what="A1, A2 and A3, of a network whose weights all differ",
                why="A4 gives a name to the weights' size, which any weights have",
            ),
        ),
    ),
    Claim(
        name="one-chance-a-path",
        place="Eq 2",
        statement="With gates as independent coins all paths of a plain network are "
        "active with one probability, which comes out of the mean output as a factor.",
        test=exact(
            measured("mean_gap", network="plain_coins"),
            rival=measured("one_chance_gap", network="plain_coins"),
        ),
        rival="the probability of one gate as that factor",
        choices=(
            Choice(
                what="the factor is $\\rho^p$, with $\\rho$ the chance of one gate",
                why="Eq 2 has one $\\rho$ a path; from Eq 10 on it is one a gate",
            ),
        ),
    ),
    Claim(
        name="chance-by-length",
        place="Eq 10",
        statement="With gates as independent coins of probability $\\rho$ a path of "
        "length $r$ is open with probability $\\rho^r$, which gives $E_A[Y]$ by "
        "length.",
        test=every(
            exact(
                measured("mean_gap", network="coins"),
                rival=measured("one_chance_gap", network="coins"),
            ),
            exact(measured("mean_terms_gap", network="cyclic")),
        ),
        rival="one probability for paths of all lengths, as in Eq 2",
    ),
    Claim(
        name="equal-products",
        place="Lemma 1, Eq 9",
        statement="Under A2 and A3 and $n/\\Lambda \\in Z$ each of the $\\Lambda^r$ "
        "products of $r$ weights occurs on exactly $\\psi_r/\\Lambda^r$ paths.",
        test=against(
            every(
                _counted(f"repeats_{end}", network, "repeats")
                for end in ("least", "most")
                for network in ("cyclic", "by_input")
            ),
            inside(smallest(measured("repeats_spread", network="uneven")), above(0)),
        ),
        rival="$\\Lambda$ that does not divide $n$: some products are more frequent",
        choices=(EVEN,),
    ),
    Claim(
        name="second-moment-bounds",
        place="Lemma 2, Eq 12",
        statement="Under A2 and A3 $\\frac{1}{d}(\\psi_r/\\Lambda^r)^2 \\leq E[\\xi^2] "
        "\\leq (\\psi_r/\\Lambda^r)^2$ for every product of weights.",
        test=every(
            inside(lowest(measured(end, network=network)), NOT_BELOW)
            for end in ("above_floor", "below_ceiling")
            for network in ("cyclic", "by_input")
        ),
        rival="a second moment outside of the bounds",
        choices=(EVEN,),
    ),
    erratum(
        name="least-square-norm",
        grade=Grade.LOOSE,
        place="Proof of Lemma 2, Eq 34",
        statement="The least $E[\\xi^2]$ is the least norm of the multiplicities.",
        printed="$\\min E[\\xi^2] = \\min \\|\\beta\\|_2$, with $\\beta = "
        "(\\beta_i)_{i=1}^p$",
        corrected="$\\min E[\\xi^2] = \\min \\|\\beta\\|_2^2 = \\frac{1}{d} "
        "(\\psi_r/\\Lambda^r)^2$, with $\\beta = (\\beta_i)_{i=1}^d$, one entry an "
        "input",
        test=inside(
            largest(measured("over_norm", network="cyclic").called("E ξ² over ‖β‖")),
            ONE,
        ),
        corrected_test=every(
            inside(
                pick(
                    measured("over_square", network="cyclic").called("E ξ² over ‖β‖²")
                ),
                ONE,
            )
            for pick in (largest, smallest)
        ),
        rival="the norm itself, which is the square's root",
    ),
    Claim(
        name="least-value-is-exact",
        place="Eq 13",
        statement="With the least value of Eq 12, $E_A[Y]$ is $\\sum_r "
        "(\\rho/\\Lambda)^r \\frac{\\psi_r}{\\sqrt d} \\sum \\tilde x_{i_1 \\dots i_r} "
        "\\prod_k w_{i_k}$.",
        test=exact(measured("approximate_gap"), rival=measured("unnormalised_gap")),
        rival="the largest value of Eq 12, which is $\\sqrt d$ times as much",
        choices=(EVEN,),
    ),
    beyond(
        name="one-variable",
        place="Eqs 11 to 13, made precise",
        statement="Where the least value of Eq 12 is attained all $\\tilde x$ are one "
        "and the same variable, $d^{-1/2}\\sum_i x_i$: their correlations are 1, which "
        "excludes the independence that section 5 assumes of them.",
        test=against(
            inside(smallest(measured("correlation_least", network="cyclic")), ONE),
            inside(
                largest(measured("correlation_least", network="by_input")), below(1)
            ),
        ),
        rival="sharing by inputs, where products that begin differently share none",
    ),
    beyond(
        name="largest-value-too",
        place="Lemma 2, made precise",
        statement="A2 and A3 do not choose the least value: where the first layer's "
        "weights go by inputs, and $d = \\Lambda$, every $E[\\xi^2]$ is the largest "
        "value.",
        test=every(
            inside(smallest(measured("share_least", network="by_input")), ONE),
            inside(largest(measured("share_most", network="by_input")), ONE),
            _counted("repeats_most", "by_input", "repeats"),
        ),
        rival="the least value, $1/d$ of it",
    ),
    beyond(
        name="inputs-independent",
        place="Below Eq 11, Lemma 2",
        statement="Lemma 2 needs independent inputs: with $x_2 = -x_1$ and so on, also "
        "centred and normal, $E[\\xi^2]$ falls below the lower bound.",
        test=inside(
            largest(measured("dependent_over_floor", network="cyclic")), below(1)
        ),
        rival="a bound for centred normal inputs, dependent or not",
    ),
    beyond(
        name="output-has-a-sign",
        place="Eqs 7, 10 and 13",
        statement="The output of Eq 7 is never negative, being a sum of ReLUs; "
        "averaged over gates that do not know the weights it is negative at some "
        "inputs.",
        test=every(
            inside(largest(measured("negative_outputs", network="residual")), NONE),
            inside(largest(measured("negative_means", network="residual")), above(0)),
        ),
        rival="an output that is as often negative as its average over gates",
    ),
)
