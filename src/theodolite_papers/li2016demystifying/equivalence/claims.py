"""Where 1-shortcut and plain networks are the same, and where not."""

from theodolite.core import (
    Choice,
    Region,
    Row,
    Select,
    Test,
    above,
    against,
    below,
    beyond,
    every,
    exact,
    inside,
    measured,
    meets,
    ordered,
    our_margin,
    slope_difference,
    trend,
)

MORE_THAN_TWO = above(
    0.3, source="ours", why="a factor of two; Xavier and orthogonal are decades apart"
)

LABELS = ("trial", "shortcuts", "units", "rank")
ROUNDING = below(1e-10, source="rounding", why="sums over 24 samples, in float64")
APART = above(0.01, source="ours", why="a hundredth of the curvature of one sample")
FLAT = our_margin(0.2, "decades per unit; random shortcuts give three times that")


def general_trend(kind: str, region: Region) -> Test:
    """Judge decades of the condition number per unit, for one kind of shortcut."""
    rows = measured("general_ratio", shortcuts=kind).called("condition number")
    return trend(rows, over="units", slope_in=region, log_x=False)


def nonlinear(row: Row) -> bool:
    """Return whether a row belongs to networks with an activation."""
    return row["setting"] != "linear"


def ratio(kind: str) -> Select:
    """Select condition numbers of a kind; depths of a network are averaged."""
    return measured("ratio", kind=kind)


WORDS = {
    "identity_gap": "distance of Hessians of both networks",
    "matrix_gap": "distance of the turned Hessians",
    "training_gap": "distance of both trainings",
    "spectrum_gap": "distance of spectra",
    "unrotated_gap": "distance of spectra with labels that are not turned",
    "at_identity": "that at identity shortcuts",
}
CLAIMS = (
    beyond(
        name="plain-at-identity",
        place="Abstract, made precise",
        statement="A linear 1-shortcut network with weights $W_r$ is the plain "
        "network with weights $I + W_r$: same loss, same Hessian.",
        test=exact(
            measured("identity_gap", setting="linear"),
            rival=measured("identity_gap", nonlinear),
        ),
        rival="a network with an activation, where it is not",
    ),
    beyond(
        name="orthogonal-hessian-similar",
        place="Abstract and section 5, made precise",
        statement="The Hessian of a plain linear network at orthogonal $O_r$ is that "
        "of the 1-shortcut network at zero with labels $Q_R^T y$, turned by $Q_{r-1} "
        "\\otimes Q_r$, $Q_r = O_r \\cdots O_1$.",
        test=exact(
            measured("matrix_gap", setting="linear"),
            rival=measured("unrotated_gap", setting="linear"),
        ),
        rival="the same labels without the rotation",
    ),
    beyond(
        name="orthogonal-trains-the-same",
        place="Section 5, made precise",
        statement="Once labels are turned, a 1-shortcut network at zero trains like "
        "the linear network with orthogonal weights, step for step.",
        test=exact(
            measured("training_gap", kind="one_shortcut_turned"),
            rival=measured(
                "training_gap", lambda row: row["kind"] in ("one_shortcut", "xavier")
            ),
        ),
        rival="the same labels without the rotation, or Xavier weights",
    ),
    beyond(
        name="equivalence-ends",
        place="Abstract, made precise",
        statement="The equivalence with no shortcuts ends where weights are Xavier's, "
        "or activations come in: spectra are equal for linear networks at orthogonal "
        "weights, labels turned; at Xavier weights condition numbers part "
        "exponentially with depth; with ReLU before each matrix orthogonal networks "
        "are worse conditioned.",
        test=every(
            exact(
                measured("spectrum_gap", setting="linear"),
                rival=measured("spectrum_gap", nonlinear),
            ),
            inside(
                slope_difference(
                    ratio("xavier").at(setting="linear"),
                    ratio("one_shortcut").at(setting="linear"),
                    "depth",
                    log_x=False,
                    name="decades a layer by which Xavier leaves 1-shortcut",
                ),
                above(0),
            ),
            ordered(
                ratio("one_shortcut").at(setting="relu before"),
                ratio("orthogonal").at(setting="relu before"),
                log=True,
                by=MORE_THAN_TWO,
            ),
        ),
        rival="condition numbers that agree with ReLU, or with Xavier weights",
        choices=(
            Choice(
                what="activations stand before or after the only matrix of a unit",
                why="it has no mid position, where the paper puts its ReLUs",
            ),
        ),
    ),
    beyond(
        name="general-shortcuts",
        place="Eq 1, beside theorem 2",
        statement="With any shortcuts $S^r$ and units of two and three matrices, the "
        "eigenvalues at zero are $\\pm$ the singular values of $P_r^T (S\\Sigma^{XX} - "
        "\\Sigma^{YX}) Q_r^T$ for units of two matrices, and zero for the others.",
        test=against(
            meets("curvature", LABELS, ROUNDING, relative=False),
            meets("curvature", LABELS, APART, formula="at_identity", relative=False),
        ),
        rival="$S^r = I$, for which theorem 2 is stated",
    ),
    beyond(
        name="invariance-needs-orthogonal-shortcuts",
        place="Eq 1, beside theorem 2.2",
        statement="The condition number at zero, over the eigenvalues that are not "
        "zero, does not change with depth where shortcuts are orthogonal; with random "
        "ones it grows.",
        test=every(
            general_trend("orthogonal", FLAT), general_trend("any", above(FLAT.high))
        ),
        rival="a condition number that no shortcut changes",
    ),
)
