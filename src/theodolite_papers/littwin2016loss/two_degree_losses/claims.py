"""Claims of theorems 3 and 4 on losses of two degrees, and of their proofs."""

from theodolite.core import (
    ROUNDING,
    Choice,
    Claim,
    Grade,
    PredictedAndMeasured,
    Quantity,
    Read,
    Test,
    above,
    against,
    below,
    beyond,
    erratum,
    every,
    exact,
    highest,
    inside,
    known,
    largest,
    lowest,
    measured,
    meets,
    near,
    predicted,
    smallest,
)

BY = ("kind", "shallow", "deep", "trial")
# Forces are sums of products that may cancel to some thousandth of their parts.
EXACT = below(1e-8, source="rounding", why="sums of products, which may cancel")
APART = above(1e-3, source="ours", why="far beyond the rounding of any of the numbers")
NOT_ROUNDING = above(ROUNDING.high, source="rounding", why=ROUNDING.why)
DEEPER = measured("bracket", lambda row: row["ratio"] > 1, kind="norm").called(
    "bracket of longer deep gradients"
)


def grows(layer: str, kind: str) -> Test:
    """Judge whether every scale is greater in magnitude after the step."""
    rows = measured(f"{layer}_growth", kind=kind).called(f"growth of {layer} scales")
    return inside(lowest(rows), above(0))


def by_autodiff(quantity: str, kind: str, formula: str = "") -> Test:
    """Judge whether autodiff agrees with a formula."""
    return meets(quantity, BY, EXACT, formula=formula, kind=kind)


def stationary(quantity: str, kind: str) -> Test:
    """Judge whether the derivative is zero where the theorem says so."""
    return inside(largest(measured(quantity, kind=kind)), EXACT)


def pull(*, over_gradient: bool) -> Read:
    """Read how far the second-order growth of a scale is from one, or from theory."""
    name = "second-order growth, from " + ("theory" if over_gradient else "1")

    def read(both: PredictedAndMeasured) -> Quantity:
        squares = predicted("gradient_square", kind="unskipped")(both)
        theory = {tuple(row[k] for k in BY): row["value"] for row in squares}
        gaps, bounds = [0.0], [0.0]
        for row in measured("unskipped_pull", kind="unskipped")(both):
            right = theory[tuple(row[k] for k in BY)] if over_gradient else 1.0
            gaps.append(abs(row["value"] - right) / right)
            bounds.append(row["error"] / right)
        gap = max(gaps) if len(gaps) > 1 else float("nan")
        return known(name, gap, max(bounds))

    return read


WORDS = {
    "unskipped_derivative": "derivative by the scale at the point of rest",
    "skipped_derivative": "derivative by the scale at the point of rest",
    "norm_derivative": "derivative by the size at the point of rest",
    "unskipped_pull": "pull on a scale without a skip",
    "skipped_pull": "pull on a scale with a skip",
    "skipped_growth": "growth of a scale with a skip",
    "unskipped_force": "turn of the scale's derivative in a step",
    "unskipped_signed": "turn of the scale's derivative, times its sign",
    "scale_gap": "distance of the scale's derivative from the loss",
    "bracket": "bracket of Eq 25",
    "skipped_force": "turn of a skipped scale's derivative in a step",
    "norm_force": "turn of the size's derivative in a step",
    "printed_norm_force": "the printed one",
    "inverse_size_turn": "turn of the inverse size in a step",
    "printed_inverse_size_turn": "the printed one",
    "norm_growth": "second-order growth of the squared norm",
    "gradient_square": "the gradient's square",
    "euler": "its sum over both parts",
    "euler_free": "derivative by the size, free mixture",
    "euler_tied": "derivative by the size, normalised mixture",
}
CLAIMS = (
    Claim(
        name="unskipped-scales-grow",
        place="Theorem 3, item 1, equation 22",
        statement="Where $\\partial L/\\partial\\lambda_l = 0$ for a layer that no "
        "skip passes over, $|\\lambda_l|$ grows in the step after a small step of the "
        "weights.",
        test=every(
            stationary("unskipped_derivative", "unskipped"),
            by_autodiff("unskipped_force", "unskipped"),
            grows("unskipped", "unskipped"),
        ),
        rival="a scale that shrinks for some loss",
    ),
    erratum(
        name="growth-is-strict",
        grade=Grade.LOOSE,
        place="Theorem 3, equations 22 and 23",
        statement="The growth is strict at every stationary point.",
        printed="$|\\lambda_l - \\mu\\,\\partial L/\\partial\\lambda_l| > "
        "|\\lambda_l|$",
        corrected="strictly so if and only if the force does not vanish; with $g = 0$ "
        "both sides are equal",
        test=inside(lowest(measured("unskipped_pull", kind="flat")), NOT_ROUNDING),
        corrected_test=every(
            inside(largest(measured("unskipped_pull", kind="flat")), EXACT),
            inside(largest(measured("skipped_pull", kind="flat")), EXACT),
            grows("unskipped", "unskipped"),
        ),
        rival="a further force that does not hang on the gradient",
    ),
    Claim(
        name="skipped-scales-grow",
        place="Theorem 3, item 2, equation 23",
        statement="Where $\\partial L/\\partial\\lambda_l = 0$ for a layer with a "
        "parallel skip and $\\|g_p\\| > \\|g_m\\|$, $|\\lambda_l|$ grows.",
        test=every(
            stationary("skipped_derivative", "dominant"),
            by_autodiff("skipped_force", "dominant"),
            grows("skipped", "dominant"),
        ),
        rival="a scale that shrinks although deep paths pull more",
    ),
    beyond(
        name="deep-dominance-not-needed",
        place="Beside theorem 3, item 2",
        statement="$\\|g_p\\| > \\|g_m\\|$ is enough and not needed: some skipped "
        "layers whose deep gradient is the shorter one grow as well, and some shrink; "
        "the sign is that of $g_p^T (g_m + g_p)$.",
        test=every(
            by_autodiff("skipped_force", "weak"),
            inside(highest(measured("skipped_growth", kind="weak")), above(0)),
            inside(lowest(measured("skipped_growth", kind="weak")), below(0)),
        ),
        rival="a condition that is needed, or growth without any condition",
    ),
    erratum(
        name="sign-of-the-derivative",
        grade=Grade.LOOSE,
        place="Proof of theorem 3, equation 39",
        statement="After the step the derivative by the scale is negative.",
        printed="$-\\mu\\,\\|g_m + g_p\\|^2/\\lambda_l < 0$",
        corrected="its sign is opposite to that of $\\lambda_l$, which may be either",
        test=inside(highest(measured("unskipped_force", kind="unskipped")), below(0)),
        corrected_test=inside(
            highest(measured("unskipped_signed", kind="unskipped")), below(0)
        ),
        rival="a sign that hangs on neither",
    ),
    erratum(
        name="gradient-left-out",
        grade=Grade.LOOSE,
        place="Proof of theorem 3, equation 41",
        statement="The new scale is $|\\lambda_l|(1 + \\mu^2/\\lambda_l^2)$ to second "
        "order.",
        printed="$|\\lambda_l|\\,(1 + \\mu^2/\\lambda_l^2)$",
        corrected="$|\\lambda_l|\\,(1 + \\mu^2 \\|g\\|^2/\\lambda_l^2)$",
        test=inside(pull(over_gradient=False), EXACT),
        corrected_test=inside(pull(over_gradient=True), EXACT),
        rival="growth that does not hang on the gradient",
    ),
    beyond(
        name="deviations-held",
        place="Beside equation 21, which holds the deviations",
        statement="In a batch-normalised network $\\lambda_l\\,\\partial "
        "L/\\partial\\lambda_l = L$ for a layer that no skip passes over only with the "
        "deviations $\\sigma$ of later layers held: they follow $\\lambda_l$ and "
        "cancel part of it.",
        test=against(
            exact(measured("scale_gap", held=True)),
            inside(smallest(measured("scale_gap", held=False)), APART),
        ),
        rival="a scale that no later normalisation sees",
    ),
    Claim(
        name="norm-is-driven",
        place="Theorem 4, equation 25",
        statement="Where $\\partial L/\\partial C = 0$, a small step of the weights "
        "turns it to $-\\frac{\\mu}{C}(m\\|g_m\\|^2 + p\\|g_p\\|^2 + (m+p)\\,g_p^T "
        "g_m)$.",
        test=every(
            stationary("norm_derivative", "norm"), by_autodiff("norm_force", "norm")
        ),
        rival="equation 45, which weighs the deep gradient alone",
    ),
    erratum(
        name="deep-square-twice",
        grade=Grade.LOOSE,
        place="Proof of theorem 4, equation 45",
        statement="The force on the norm is made of the deep gradient's square twice.",
        printed=("$-\\frac{\\mu}{C}(m\\|g_p\\|^2 + p\\|g_p\\|^2 + (m+p)\\,g_p^T g_m)$"),
        corrected="$m\\|g_m\\|^2$ in the first place, as in equation 25",
        test=by_autodiff("norm_force", "norm", "printed_norm_force"),
        corrected_test=by_autodiff("norm_force", "norm"),
        rival="equal gradients, for which both are the same",
    ),
    erratum(
        name="inverse-size-turns",
        place="Proof of theorem 4, equation 44",
        statement="The directional derivative of $\\sqrt{\\Lambda}/\\|w\\|$ along $g$ "
        "is $w^T g/C^{3/2}$; in the proof it is multiplied by zero.",
        printed="$+\\,w^T g/C^{3/2}$",
        corrected="$-\\,w^T g/(\\Lambda C^3)$",
        test=meets(
            "inverse_size_turn",
            BY,
            ROUNDING,
            formula="printed_inverse_size_turn",
            kind="free",
        ),
        corrected_test=by_autodiff("inverse_size_turn", "free"),
        rival="another power of the size",
    ),
    Claim(
        name="deep-gradients-stretch",
        place="Section 4.2, after theorem 4",
        statement="Where the gradient of deeper paths dominates, the weights' scale "
        "$C$ increases.",
        test=every(
            inside(lowest(measured("bracket", kind="deep_opposite")), above(0)),
            inside(lowest(DEEPER), above(0)),
        ),
        rival="a scale that shrinks where the gradients are opposite",
    ),
    beyond(
        name="shallow-gradients-stretch-too",
        place="Made precise: theorem 4",
        statement="$C$ is sure to increase if and only if $\\|g_p\\| > \\|g_m\\|$ or "
        "$\\|g_p\\| < \\frac{m}{p}\\|g_m\\|$: the worst case is $(\\|g_m\\| - "
        "\\|g_p\\|)(m\\|g_m\\| - p\\|g_p\\|)$, met by opposite gradients, so that "
        "shallow dominance stretches as well.",
        test=every(
            inside(lowest(measured("bracket", kind="deep_opposite")), above(0)),
            inside(highest(measured("bracket", kind="middle_opposite")), below(0)),
            inside(lowest(measured("bracket", kind="shallow_opposite")), above(0)),
        ),
        rival="a sign that the deep gradient alone decides",
    ),
    beyond(
        name="norm-grows-anyway",
        place="Beside theorem 4",
        statement="Where $\\partial L/\\partial C = 0$ the gradient is orthogonal to "
        "the weights, so that their norm grows in the very first step, $\\|w - \\mu "
        "g\\|^2 = \\|w\\|^2 + \\mu^2\\|g\\|^2$, whichever part pulls.",
        test=meets(
            "norm_growth",
            BY,
            near(0, 1e-6, source="rounding", why="a difference over a step squared"),
            formula="gradient_square",
            kind="norm",
        ),
        rival="a norm that only grows where deep gradients dominate",
    ),
    Claim(
        name="euler-of-the-parts",
        place="Proof of theorem 4",
        statement="$\\partial L/\\partial C = \\frac{1}{C}(m L_m + p L_p)$.",
        test=against(
            by_autodiff("euler_free", "free", "euler"),
            meets("euler_tied", BY, APART, formula="euler", kind="free"),
        ),
        rival="parts whose coefficients are normalised again at every $C$",
        choices=(
            Choice(
                what="parts are homogeneous in $w$, without the factor $1/z(C)$",
                why="so the proof uses them; what $z$ does is the erratum above Eq 19",
            ),
        ),
    ),
)
