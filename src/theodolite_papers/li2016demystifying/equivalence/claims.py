"""Where 1-shortcut and plain networks are the same, and where not."""

from theodolite.core import (
    Choice,
    Row,
    Select,
    above,
    beyond,
    every,
    exact,
    inside,
    measured,
    ordered,
    slope_difference,
)

MORE_THAN_TWO = above(
    0.3, source="ours", why="a factor of two; Xavier and orthogonal are decades apart"
)


def nonlinear(row: Row) -> bool:
    """Return whether a row belongs to networks with an activation."""
    return row["setting"] != "linear"


def ratio(kind: str) -> Select:
    """Select condition numbers of a kind; depths of a network are averaged."""
    return measured("ratio", kind=kind)


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
)
