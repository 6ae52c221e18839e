"""What figure 4 and the prose around theorem 2 claim, judged from rows.

Errors of slopes are over networks: each network's own slope, then their standard
error. Only depths at which every network's percentile is above rounding are used.
"""

from collections.abc import Callable

import numpy as np

from theodolite.core import (
    Claim,
    Estimate,
    Kind,
    Number,
    Rows,
    Verdict,
    estimate,
    fit_line,
    holds_if,
    paired_test,
    undecided,
)
from theodolite.studies.li2016demystifying.judging import ALONE


def _resolved(measured: Rows, kind: str) -> Rows:
    """Return the ratios of a kind at depths where all of them are resolved."""
    rows = measured.where(quantity="ratio", kind=kind)
    lost = {row["depth"] for row in rows if row["status"] != "exact"}
    return rows.where(lambda row: row["depth"] not in lost)


def _slopes(
    rows: Rows, axis: Callable[[np.ndarray], np.ndarray] = np.log
) -> np.ndarray:
    """Return each network's slope of log ratio against depth on an axis."""
    found = []
    for trial in rows.levels("trial"):
        chosen = rows.where(trial=trial)
        depth = np.array(chosen.column("depth"), dtype=float)
        found.append(fit_line(axis(depth), np.log(chosen.values())).slope)
    return np.array(found)


def _linear(depth: np.ndarray) -> np.ndarray:
    return depth


def _number(found: Estimate, scale: float = 1.0) -> Number:
    return Number(found.mean * scale, found.stderr * scale)


def _too_little(rows: Rows) -> str | None:
    """Say why rows cannot carry a growth rate with an error, if so."""
    if len(rows.levels("trial")) < 2:
        return ALONE
    if len(rows.levels("depth")) < 3:
        return "fewer than three depths are above rounding"
    return None


def _log10_at(rows: Rows, depth: int) -> Number:
    return _number(estimate(np.log10(rows.where(depth=depth).values())))


def _last_exponent(predicted: Rows, quantity: str, kind: str) -> Number:
    """Return the growth exponent between the last two predicted depths."""
    rows = predicted.where(quantity=quantity, kind=kind)
    depth = np.array(rows.column("depth"), dtype=float)[-2:]
    value, error = rows.values()[-2:], rows.values("error")[-2:]
    span = float(np.log(depth[1] / depth[0]))
    return Number(
        float(np.log(value[1] / value[0])) / span, float(np.sum(error / value)) / span
    )


def _two_constant(predicted: Rows, measured: Rows) -> Verdict:
    closed = predicted.where(quantity="ratio", kind="two_shortcut").values()
    rows, other = (_resolved(measured, f"{n}_shortcut") for n in ("two", "one"))
    numbers: dict[str, Number | float] = {
        "ratio at zero": Number(float(closed.mean()), float(np.ptp(closed)))
    }
    if why := _too_little(rows):
        return undecided(why, numbers)
    slope, rival = estimate(_slopes(rows)), estimate(_slopes(other))
    numbers["exponent at small weights"] = _number(slope)
    numbers["exponent of 1-shortcut"] = _number(rival)
    constant = float(np.ptp(closed)) < 1e-10 * float(closed.mean())
    return holds_if(
        constant and abs(slope.mean) + 2 * slope.stderr < 0.05,
        numbers,
        holds="the closed form does not change with depth at all, and at small weights "
        "the growth exponent is below 0.05",
        fails="the condition number grows with depth",
    )


def _xavier(predicted: Rows, measured: Rows) -> Verdict:
    rows = _resolved(measured, "xavier")
    if why := _too_little(rows):
        return undecided(why, {"resolved networks": len(rows)})
    depths = rows.levels("depth")
    ends = [
        np.log10(rows.where(depth=depth).values()) for depth in (depths[-2], depths[-1])
    ]
    late = estimate((ends[1] - ends[0]) / (depths[-1] - depths[-2]))
    whole = estimate(_slopes(rows, _linear) / np.log(10))
    numbers: dict[str, Number | float] = {
        "decades a layer": _number(whole),
        f"decades a layer from depth {depths[-2]} to {depths[-1]}": _number(late),
        f"log10 ratio at depth {depths[0]}": _log10_at(rows, depths[0]),
        f"log10 ratio at depth {depths[-1]}": _log10_at(rows, depths[-1]),
    }
    return holds_if(
        late.mean > 3 * late.stderr and whole.mean > 5 * whole.stderr,
        numbers,
        holds="every layer multiplies the ratio, between the deepest networks too",
        fails="the ratio levels off or does not grow",
    )


def _orthogonal(predicted: Rows, measured: Rows) -> Verdict:
    rows = _resolved(measured, "orthogonal")
    if why := _too_little(rows):
        return undecided(why, {"resolved networks": len(rows)})
    slope = estimate(_slopes(rows))
    return holds_if(
        slope.mean > 0.5 and slope.mean > 5 * slope.stderr,
        {"exponent": _number(slope)},
        holds="the ratio grows as a power of depth, close to the first",
        fails="the ratio levels off or does not grow",
    )


def _slower(predicted: Rows, measured: Rows) -> Verdict:
    xavier, orthogonal = (_resolved(measured, k) for k in ("xavier", "orthogonal"))
    depths = xavier.levels("depth")
    orthogonal = orthogonal.where(lambda row: row["depth"] in depths)
    numbers: dict[str, Number | float] = {}
    least = np.inf
    for depth in depths:
        pair = [
            np.log10(rows.where(depth=depth).values()) for rows in (xavier, orthogonal)
        ]
        test = paired_test(*pair)
        numbers[f"log10 gap at depth {depth}"] = Number(test.difference, test.stderr)
        least = min(least, test.difference)
    trials = len(xavier.levels("trial"))
    if trials < 6:
        # Sign flips of fewer pairs cannot reach 5 %.
        why = f"{trials} networks a depth are too few for a paired test"
        return undecided(why, numbers)
    if why := _too_little(xavier):
        return undecided(why, numbers)
    growth = paired_test(_slopes(xavier), _slopes(orthogonal))
    numbers["gap of growth exponents"] = Number(growth.difference, growth.stderr)
    numbers["p-value of that gap"] = growth.p_value
    return holds_if(
        least > 0 and growth.difference > 0 and growth.p_value < 0.05,
        numbers,
        holds="on the same seeds orthogonal networks are better conditioned at every "
        "depth, and the gap widens with depth",
        fails="the gap does not widen with depth, or orthogonal networks are worse",
    )


def _one_grows(predicted: Rows, measured: Rows) -> Verdict:
    at_zero = _last_exponent(predicted, "ratio", "one_shortcut")
    rows = _resolved(measured, "one_shortcut")
    last = predicted.where(quantity="ratio", kind="one_shortcut")[-1]
    numbers: dict[str, Number | float] = {
        "exponent at zero, last two depths": at_zero,
        f"ratio at zero, depth {last['depth']}": Number(last["value"], last["error"]),
    }
    if why := _too_little(rows):
        return undecided(why, numbers)
    near = estimate(_slopes(rows))
    numbers["exponent at small weights"] = _number(near)
    return holds_if(
        at_zero.value > 0.5 and near.mean > 0.5,
        numbers,
        holds="the ratio grows without bound, at zero and at small weights",
        fails="the ratio levels off",
    )


def _gray(predicted: Rows, measured: Rows) -> Verdict:
    rows = predicted.where(quantity="largest", kind="one_shortcut")
    depth, value = np.array(rows.column("depth"), dtype=float), rows.values()
    rise = float((value[-1] - value[-2]) / (depth[-1] - depth[-2]))
    error = float(rows.values("error")[-2:].sum() / (depth[-1] - depth[-2]))
    exponent = _last_exponent(predicted, "ratio", "one_shortcut")
    table = {
        name: Number(row["value"], row["error"])
        for name in ("slope", "ceiling", "block_norm")
        for row in [predicted.only(quantity=name)]
    }
    return holds_if(
        abs(rise / table["slope"].value - 1) < 0.01 and abs(exponent.value - 1) < 0.1,
        {
            "rise of the largest eigenvalue a layer": Number(rise, error),
            "largest eigenvalue of A's symmetric part": table["slope"],
            "growth exponent of the ratio, last two depths": exponent,
            "ceiling on the smallest magnitude": table["ceiling"],
            "norm of every off-diagonal block": table["block_norm"],
        },
        holds="the largest eigenvalue grows linearly at the rate of the symmetric part "
        "of A while small ones stay bounded, although the blocks never decay",
        fails="the growth is not linear at that rate",
    )


def _equivalent(predicted: Rows, measured: Rows) -> Verdict:
    kinds = ("one_shortcut", "orthogonal", "xavier")
    rows = {kind: _resolved(measured, kind) for kind in kinds}
    if why := _too_little(rows["xavier"]):
        return undecided(why, {"resolved networks": len(rows["xavier"])})
    depth = rows["xavier"].levels("depth")[-1]
    logs = {kind: _log10_at(rows[kind], depth) for kind in kinds}
    gaps = {}
    for kind in kinds[1:]:
        error = float(np.hypot(logs["one_shortcut"].error or 0, logs[kind].error or 0))
        gaps[kind] = Number(logs[kind].value - logs["one_shortcut"].value, error)
    numbers: dict[str, Number | float] = {
        f"log10 ratio of 1-shortcut at depth {depth}": logs["one_shortcut"],
        "gap to orthogonal weights": gaps["orthogonal"],
        "gap to Xavier weights": gaps["xavier"],
    }
    worst = gaps["xavier"]
    error = float("nan") if worst.error is None else worst.error
    if abs(worst.value) < 0.3 + 4 * error and not 4 * error < 0.3:
        return undecided("the spread over networks is as large as the gap", numbers)
    return holds_if(
        abs(worst.value) + 2 * error < 0.3,
        numbers,
        holds="the condition numbers agree, whatever the weights",
        fails="they agree for orthogonal weights, but a plain network with Xavier "
        "weights is worse conditioned by orders of magnitude",
    )


def _rotation(predicted: Rows, measured: Rows) -> Verdict:
    rows = measured.where(quantity="rotated_gap")
    gaps, straight = rows.values(), rows.values("unrotated")
    error = float(rows.values("error").max())
    return holds_if(
        float(gaps.max()) < 1e-10 < float(straight.min()),
        {
            "largest deviation": Number(float(gaps.max()), error),
            "least deviation without the rotation": Number(
                float(straight.min()), error
            ),
        },
        holds="every eigenvalue of an orthogonal network is one of a 1-shortcut "
        "network at zero whose labels are turned by the network's own map",
        fails="the two spectra differ",
    )


def _conventions(predicted: Rows, measured: Rows) -> Verdict:
    rows = measured.where(kind="conventions")
    percentile: dict[str, Number | float] = {}
    values = []
    for row in rows.where(quantity="percentile"):
        values.append(row["value"])
        name = f"percentile read '{row['method']}'"
        percentile[name] = Number(row["value"], row["error"])
    ends = {}
    for name in ("least", "most"):
        row = rows.only(quantity=f"convention_{name}")
        ends[f"{name} cond(M) over signs and orders"] = Number(
            row["value"], row["error"]
        )
    least, most = (number.value for number in ends.values())
    return holds_if(
        max(values) / min(values) > 1.001 and most / least > 1.05,
        {**percentile, **ends},
        holds="the value at zero depends on choices that the paper does not state",
        fails="no convention moves the value",
    )


CLAIMS = (
    Claim(
        name="two-shortcut-constant",
        place="Figure 4, section 5.1",
        statement=(
            "2-shortcut linear networks have the same initial condition number at "
            "every depth."
        ),
        check=_two_constant,
        rival="growth in proportion to depth, as without the second matrix",
    ),
    Claim(
        name="xavier-explodes",
        place="Figure 4, section 5.1",
        statement=(
            "With Xavier initialisation the condition number goes to infinity with "
            "depth."
        ),
        check=_xavier,
        rival="a condition number that levels off",
    ),
    Claim(
        name="orthogonal-explodes",
        place="Figure 4, section 5.1",
        statement=(
            "With orthogonal initialisation the condition number goes to infinity with "
            "depth."
        ),
        check=_orthogonal,
        rival="a condition number that levels off",
    ),
    Claim(
        name="orthogonal-slower",
        place="Figure 4, section 5.1",
        statement=(
            "The condition number grows more slowly with orthogonal than with Xavier "
            "initialisation."
        ),
        check=_slower,
        rival="equal growth, with a constant factor between the two",
    ),
    Claim(
        name="one-shortcut-explodes",
        place="Section 4.2, after theorem 2",
        statement=(
            "The condition number of 1-shortcut networks at zero explodes with depth."
        ),
        check=_one_grows,
        rival="a bounded condition number, as for 2-shortcut networks",
    ),
    Claim(
        name="growth-is-linear",
        place="Section 4.2, citing Gray (2006)",
        kind=Kind.ERRATUM,
        statement=(
            "The growth of the 1-shortcut condition number does not follow from "
            "Toeplitz theory, whose entries must decay; it is linear, and elementary."
        ),
        printed="block Toeplitz, hence exploding by Gray's theorems",
        corrected=(
            "$\\lambda_{\\max} \\geq R\\,v^T A_s v - v^T (A_s - B) v$ for every unit "
            "vector $v$, while $(e_1-e_2)/\\sqrt{2} \\otimes v$ is moved by an amount "
            "free of $R$: the ratio grows like $R$"
        ),
        check=_gray,
        rival="exponential growth",
    ),
    Claim(
        name="one-shortcut-is-none",
        place="Abstract",
        statement=(
            "Shortcuts of length 1 are essentially equivalent to no shortcuts, "
            "whatever the initialisation of the plain network."
        ),
        check=_equivalent,
        rival="a plain Xavier network, conditioned much worse",
    ),
    Claim(
        name="one-shortcut-is-orthogonal",
        place="Abstract, section 5",
        kind=Kind.ERRATUM,
        statement=(
            "The equivalence is exact for linear networks with orthogonal weights "
            "$O_r$ and labels turned by $Q = O_R \\cdots O_1$."
        ),
        printed="1-shortcut is essentially equivalent to no shortcuts",
        corrected=(
            "the Hessian of the plain network at $O_1, \\ldots, O_R$ is orthogonally "
            "similar to that of the 1-shortcut network at zero with labels $Q^T y$"
        ),
        check=_rotation,
        rival="the same labels without the rotation",
    ),
    Claim(
        name="conventions-unstated",
        place="Appendix B",
        kind=Kind.ERRATUM,
        statement=(
            "An omission: the ratio depends on how the percentile is read between "
            "order statistics and on the signs and order of principal components and "
            "classes, none of which is stated."
        ),
        printed="$|\\lambda|_{(0.1)}$, the 10th percentile, of whitened MNIST",
        corrected=(
            "linear interpolation, components by falling variance with their largest "
            "entry positive, classes in order"
        ),
        check=_conventions,
        rival="a number that no convention moves",
    ),
)
