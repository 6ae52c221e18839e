"""Claims on which results carry over to networks with activations."""

from theodolite.core import (
    Claim,
    Read,
    Select,
    Test,
    above,
    against,
    below,
    beyond,
    each,
    every,
    exact,
    inside,
    largest,
    measured,
    our_margin,
    slope,
    smallest,
    trend,
)

from .config import TWO

NO_GROWTH = our_margin(0.05, "over a factor of 50 in depth this is a factor of 1.2")
GROWTH = above(0.05, source="ours", why="the margin of what counts as constant")
SQUARE = above(1.5, source="ours", why="a square, told from a first power")
EXACT = above(1e-10, source="rounding", why="what the exact one is within")


def of_two(quantity: str) -> Select:
    """Select a number of 2-shortcut ReLU networks on digits."""
    return measured(quantity, kind=TWO)


ONE = measured("ratio", lambda row: row["kind"] != TWO)


def grows(kind: str) -> Test:
    """Judge whether 1-shortcut networks of a kind get worse with depth."""
    return trend(ONE.at(kind=kind), over="depth", slope_in=GROWTH)


def exponent(quantity: str) -> Read:
    """Read the power of depth by which a number of 2-shortcut ReLU networks grows."""
    return slope(of_two(quantity), "depth")


WORDS = {
    "ratio": "condition number",
    "whole": "distance of the Hessian from its decomposition",
    "within": "entry that errors add within a layer",
    "largest": "largest eigenvalue",
    "without_residual": "distance of the Hessian from Gauss-Newton",
    "gauss_newton": "distance of the Gauss-Newton part from its formula",
    "open_gates": "distance of the Hessian from that of open gates",
    "exact_gap": "distance of the exact Hessian from the measured one",
    "within_tanh": "entry that errors add within a layer, tanh",
    "mean_size": "mean size of eigenvalues",
}
CLAIMS = (
    Claim(
        name="relu-condition-invariant",
        place="Abstract, theorem 2.2",
        statement="With nonlinearities too the condition number of 2-shortcut "
        "networks at the start does not depend on depth; here with ReLU at mid, small "
        "random weights and the measure of figure 4.",
        test=against(
            inside(exponent("ratio"), NO_GROWTH), each("kind", ONE, grows, least=2)
        ),
        rival="a condition number that grows with depth, as of 1-shortcut networks",
    ),
    Claim(
        name="one-shortcut-explodes-nonlinear",
        place="Abstract, section 2",
        statement="The condition number of 1-shortcut networks grows with depth with "
        "nonlinearities too: tanh, and ReLU before or after the matrix, at small "
        "weights.",
        test=each("kind", ONE, grows, least=2),
        rival="a condition number that stays, as of 2-shortcut networks",
    ),
    beyond(
        name="relu-extremes-spread",
        place="Made precise: theorem 2.2 for ReLU",
        statement="Each hidden unit draws its own half-space moment: averages over "
        "the spectrum do not depend on depth, and the largest eigenvalue rises with "
        "it, at most to $E[|x-y|\\,|x|]$.",
        test=every(
            trend(
                of_two("mean_size"),
                over="depth",
                slope_in=our_margin(0.02, "over a factor of 50 in depth this is 8 %"),
            ),
            inside(exponent("largest"), above(0)),
            lambda both: inside(
                largest(of_two("largest")),
                below(
                    both.predicted.value(quantity="ceiling"),
                    source="ours",
                    why="the bound on any half-space moment of these data",
                ),
            )(both),
        ),
        rival="extremes that stay",
    ),
    beyond(
        name="relu-decomposition",
        place="Made precise: section 5.3.1, with Bishop (1992) of appendix B",
        statement="With ReLU at mid and no sample on a kink the Hessian is $E[J^T J]$ "
        "plus $E[(S_{kl} \\otimes P_k^T e\\,a_l^T)K]$ between layers $k > l$.",
        test=every(
            exact(measured("whole"), rival=measured("without_residual")),
            exact(measured("gauss_newton"), rival=measured("open_gates")),
            exact(measured("exact_gap")),
        ),
        rival="Gauss–Newton alone, or the linear network with all gates open",
    ),
    beyond(
        name="relu-within-layers",
        place="Made precise: assumption 3",
        statement="The error adds nothing to the block of a layer with itself.",
        test=against(
            exact(measured("within")), inside(largest(measured("within_tanh")), EXACT)
        ),
        rival="a smooth activation, whose curvature adds there",
        asides=lambda both: {
            "least distance to a kink": smallest(measured("margin"))(both).value
        },
    ),
    beyond(
        name="relu-limit-at-zero",
        place="Made precise: theorem 2.2 for ReLU",
        statement="As weights shrink, the spectrum tends to $\\pm sv(M(w_j))$, the "
        "singular values of half-space moments.",
        test=trend(
            measured("limit_gap"),
            over="scale",
            slope_in=SQUARE,
            name="exponent of the distance in the weights",
        ),
        rival="another limit, such as that of Eq 26",
    ),
)
