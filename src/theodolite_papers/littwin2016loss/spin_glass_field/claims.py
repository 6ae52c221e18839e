"""Claims of Eqs 5, 6 and 26 to 29 on the energy as a random field."""

from collections.abc import Callable

from theodolite.core import (
    Choice,
    Claim,
    Grade,
    PredictedAndMeasured,
    Quantity,
    Read,
    Select,
    Test,
    above,
    against,
    at_each,
    below,
    beyond,
    by_network,
    erratum,
    every,
    exact,
    inside,
    largest,
    mean,
    measured,
    near,
    our_margin,
    predicted,
    smallest,
)

from ..shared.rows import MORE_THAN_ROUNDING, rescaled

# Second moments are known to a few hundredths; the rival values are further away.
CLOSE = our_margin(
    0.15, "other normalisations are off by a quarter and more", centre=1.0
)
ZERO = our_margin(0.15, "in units of the energy's spread")
NONE = near(0, 1e-12, source="rounding", why="sums of a few products")
PURE, MIXED = ("three",), ("two-three", "two-four")


def over_closed(rows: Select, closed: str) -> Read:
    """Read the mean over trials of a second moment over its closed form."""

    def read(both: PredictedAndMeasured) -> Quantity:
        wanted = both.predicted.value(quantity=closed, **rows.labels)
        ratios = rescaled(by_network(rows(both)), over=wanted)
        return ratios.mean(f"{rows} over closed form")

    return read


def for_each_glass(
    quantity: str,
    make: Callable[[Select], Test],
    mixtures: tuple[str, ...] = PURE + MIXED,
) -> Test:
    """Judge a test on every mixture and dimension."""
    selected = [measured(quantity, mixture=mixture) for mixture in mixtures]
    return every(at_each("width", rows, make) for rows in selected)


def is_closed_form(
    quantity: str, closed: str = "", mixtures: tuple[str, ...] = PURE + MIXED
) -> Test:
    """Judge whether a second moment equals its closed form for every glass."""
    return for_each_glass(
        quantity,
        lambda rows: inside(over_closed(rows, closed or quantity), CLOSE),
        mixtures,
    )


def centred(mixtures: tuple[str, ...]) -> Test:
    """Judge whether the mean energy is zero."""
    return for_each_glass("centre", lambda rows: inside(mean(rows), ZERO), mixtures)


def off_the_sphere(mixtures: tuple[str, ...]) -> Test:
    """Judge whether the variance differs off the sphere, so the constraint matters."""
    far = above(CLOSE.high, source="ours", why=CLOSE.why)
    return for_each_glass(
        "variance_off", lambda rows: inside(mean(rows), far), mixtures
    )


def covariance_gap(rows: Select) -> Read:
    """Read how far the covariance is from its closed form, over the variance."""

    def read(both: PredictedAndMeasured) -> Quantity:
        wanted = both.predicted.value(quantity="covariance", **rows.labels)
        gaps = rescaled(by_network(rows(both)), less=wanted)
        return gaps.mean(f"{rows} less closed form")

    return read


WORDS = {
    "centre": "mean energy over its spread",
    "variance": "variance of the energy",
    "variance_off": "variance of the energy off the sphere",
    "slope_square": "mean square of tangent gradients",
    "bend_square": "mean square of tangent Hessians",
    "radial_square": "mean square of the radial derivative",
    "printed_variance": "variance of the energy of Eq 26",
    "printed_slope_square": "mean square of tangent gradients of Eq 26",
    "printed_bend_square": "mean square of tangent Hessians of Eq 26",
    "spread": "$\\alpha^2$",
    "euler_gap": "distance of the radial derivative from a multiple of the energy",
    "covariance": "covariance of energies at two points, over the variance",
}
CLAIMS = (
    Claim(
        name="pure-field",
        place="Eqs 5 and 6",
        statement="The Hamiltonian of a single order $p$ is a centred Gaussian process "
        "on the sphere $\\frac{1}{\\Lambda}\\sum \\tilde w_i^2 = 1$, of variance "
        "$\\Lambda$.",
        test=against(
            every(centred(PURE), is_closed_form("variance", mixtures=PURE)),
            off_the_sphere(PURE),
        ),
        rival="another variance, as off the sphere",
    ),
    Claim(
        name="variance-free-of-mixture",
        place="Eqs 27 and 28",
        statement="The variance of the mixed Hamiltonian is $\\Lambda \\sum "
        "\\epsilon_r^2 = \\Lambda$, whatever the mixture.",
        test=against(
            every(centred(MIXED), is_closed_form("variance", mixtures=MIXED)),
            off_the_sphere(MIXED),
        ),
        rival="a variance that depends on the mixture, as off the sphere",
        choices=(
            Choice(
                what="sums from $r = 2$, and a product of all $r$ factors",
                why="Eq 28 has one sum from 1, Eq 26 one factor less: see the erratum",
            ),
        ),
    ),
    erratum(
        name="one-factor-short",
        grade=Grade.LOOSE,
        place="Eqs 26 and 29",
        statement="The field of Eq 26 has the $v'$ and $v''$ of definition 3: "
        "variances of its tangent gradient and, times $\\Lambda$, of its tangent "
        "Hessian.",
        printed="$J^r_{i_1 \\dots i_r} \\tilde w_{i_2} \\cdots \\tilde w_{i_r}$, $r > "
        "2$",
        corrected="$J^r_{i_1 \\dots i_r} \\tilde w_{i_1} \\cdots \\tilde w_{i_r}$, $r "
        "\\geq 2$: the printed product has the right variance and the degree, gradient "
        "and Hessian of order $r - 1$",
        test=every(
            is_closed_form("printed_slope_square", "slope_square"),
            is_closed_form("printed_bend_square", "bend_square"),
        ),
        corrected_test=every(
            is_closed_form("slope_square"),
            is_closed_form("bend_square"),
            is_closed_form("printed_variance", "variance"),
        ),
        rival="one order less",
    ),
    Claim(
        name="single-order-no-spread",
        place="Definition 3, the note after it",
        statement="For a single order $\\alpha^2 = v'' + v' - v'^2$ is zero.",
        test=against(
            every(
                inside(largest(predicted("spread", mixture="three")), NONE),
                exact(measured("euler_gap", mixture="three")),
            ),
            every(
                inside(smallest(predicted("spread", mixture=name)), MORE_THAN_ROUNDING)
                for name in MIXED
            ),
        ),
        rival="a spread, as of mixtures",
    ),
    beyond(
        name="radial-variance",
        place="Definition 3, made precise",
        statement="$w \\cdot \\nabla H / \\sqrt{\\Lambda}$ has variance $v' + v''$: of "
        "one order it is $p H/\\sqrt{\\Lambda}$ itself, of a mixture it leaves a share "
        "$\\alpha^2/(v' + v'')$ of the energy's variance open.",
        test=against(
            is_closed_form("radial_square"),
            every(
                inside(
                    smallest(measured("euler_gap", mixture=name)), MORE_THAN_ROUNDING
                )
                for name in MIXED
            ),
        ),
        rival="a radial derivative that is a multiple of the energy",
    ),
    beyond(
        name="covariance-by-overlap",
        place="Eq 28, made precise",
        statement="Energies at two points of overlap $q = w \\cdot w'/\\Lambda$ have "
        "covariance $\\Lambda \\sum \\epsilon_r^2 q^r$.",
        test=against(
            for_each_glass(
                "covariance", lambda rows: inside(covariance_gap(rows), ZERO)
            ),
            for_each_glass(
                "covariance",
                lambda rows: inside(
                    mean(rows), below(CLOSE.low, source="ours", why=CLOSE.why)
                ),
            ),
        ),
        rival="one variable at all points",
    ),
)
