"""What figure 4 and the prose around theorem 2 claim, judged from rows."""

import numpy as np

from theodolite.core import (
    Claim,
    Kind,
    Line,
    Number,
    Outcome,
    Rows,
    Verdict,
    estimate,
    fit_line,
    holds_if,
    paired_test,
)


def _logs(measured: Rows, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return depth and log ratio of every resolved network of a kind."""
    rows = measured.where(quantity="ratio", kind=kind, status="exact")
    return np.array(rows.column("depth"), dtype=float), np.log(rows.values())


def _power(measured: Rows, kind: str) -> Line:
    depth, log = _logs(measured, kind)
    return fit_line(np.log(depth), log)


def _exponential(measured: Rows, kind: str) -> Line:
    depth, log = _logs(measured, kind)
    return fit_line(depth, log)


def _mean(measured: Rows, kind: str, depth: int) -> Number:
    found = estimate(
        np.log10(measured.where(quantity="ratio", kind=kind, depth=depth).values())
    )
    return Number(found.mean, found.stderr)


def _two_constant(predicted: Rows, measured: Rows) -> Verdict:
    closed = predicted.where(quantity="ratio", kind="two_shortcut").values()
    spread = float(np.ptp(closed) / closed.mean())
    line = _power(measured, "two_shortcut")
    rival = _power(measured, "one_shortcut")
    limit = 0.05
    return holds_if(
        spread < 1e-10 and abs(line.slope) + 2 * line.slope_stderr < limit,
        "the closed form does not change with depth at all, and at small weights the "
        "growth exponent is below 0.05",
        {
            "ratio at zero": Number(float(closed.mean()), float(np.ptp(closed))),
            "exponent at small weights": Number(line.slope, line.slope_stderr),
            "exponent of 1-shortcut": Number(rival.slope, rival.slope_stderr),
        },
    )


def _xavier(predicted: Rows, measured: Rows) -> Verdict:
    # The first layers spread the spectrum faster than later ones: the shape of the
    # growth is judged on the deeper half, where there are enough depths.
    depths = measured.where(quantity="ratio", kind="xavier").levels("depth")
    late = depths[len(depths) // 2 - 1 :] if len(depths) >= 5 else depths
    deep = measured.where(lambda row: row.get("depth") in late)
    line, rival = _exponential(deep, "xavier"), _power(deep, "xavier")
    numbers = {
        "growth a layer, log10": Number(
            line.slope / np.log(10), line.slope_stderr / np.log(10)
        ),
        f"log10 ratio at depth {depths[0]}": _mean(measured, "xavier", depths[0]),
        f"log10 ratio at depth {depths[-1]}": _mean(measured, "xavier", depths[-1]),
        "R² of exponential growth": line.r_squared,
        "R² of a power law": rival.r_squared,
    }
    grows = line.slope > 5 * line.slope_stderr
    shape = (
        "by a constant factor with every layer"
        if line.r_squared > rival.r_squared
        else "faster than any level-off allows, over depths too few to tell its shape"
    )
    because = f"the ratio grows {shape}" if grows else "the ratio does not grow"
    return holds_if(grows, because, numbers)


def _orthogonal(predicted: Rows, measured: Rows) -> Verdict:
    line = _power(measured, "orthogonal")
    return holds_if(
        line.slope > 0.5 and line.slope > 5 * line.slope_stderr,
        "the ratio grows as a power of depth, close to the first",
        {"exponent": Number(line.slope, line.slope_stderr)},
    )


def _slower(predicted: Rows, measured: Rows) -> Verdict:
    numbers: dict[str, Number | float] = {}
    worst, least = 0.0, np.inf
    ratios = measured.where(quantity="ratio")
    for depth in ratios.levels("depth"):
        logs = [
            np.log10(ratios.where(kind=kind, depth=depth).values())
            for kind in ("xavier", "orthogonal")
        ]
        test = paired_test(*logs)
        numbers[f"log10 gap at depth {depth}"] = Number(test.difference, test.stderr)
        worst, least = max(worst, test.p_value), min(least, test.difference)
    numbers["largest p-value"] = worst
    trials = len(ratios.levels("trial"))
    if trials < 6:
        # Sign flips of fewer pairs cannot reach 5 %.
        return Verdict(
            outcome=Outcome.UNDECIDED,
            because=f"{trials} networks a depth are too few for a paired test",
            numbers=numbers,
        )
    return holds_if(
        least > 0 and worst < 0.05,
        "orthogonal networks are better conditioned than Xavier ones at every depth",
        numbers,
    )


def _one_grows(predicted: Rows, measured: Rows) -> Verdict:
    closed = predicted.where(quantity="ratio", kind="one_shortcut")
    depths = np.array(closed.column("depth"), dtype=float)
    line = fit_line(np.log(depths), np.log(closed.values()))
    near = _power(measured, "one_shortcut")
    return holds_if(
        line.slope > 0.5 and near.slope > 0.5,
        "the ratio grows without bound, at zero and at small weights",
        {
            "exponent at zero": Number(line.slope, line.slope_stderr),
            "exponent at small weights": Number(near.slope, near.slope_stderr),
            f"ratio at depth {int(depths[-1])}": float(closed.values()[-1]),
        },
    )


def _gray(predicted: Rows, measured: Rows) -> Verdict:
    largest = predicted.where(quantity="largest", kind="one_shortcut")
    small = predicted.where(quantity="small", kind="one_shortcut").values()
    depth, value = np.array(largest.column("depth"), dtype=float), largest.values()
    last = (value[-1] - value[-2]) / (depth[-1] - depth[-2])
    slope = predicted.value(quantity="slope")
    line, power = fit_line(depth, value / small), fit_line(depth, np.log(value / small))
    return holds_if(
        abs(last / slope - 1) < 0.01 and line.r_squared > power.r_squared,
        "the largest eigenvalue grows linearly at the rate of the symmetric part of A "
        "while small ones stay bounded, although the blocks never decay",
        {
            "rise of the largest eigenvalue a layer": float(last),
            "largest eigenvalue of A's symmetric part": slope,
            "ceiling on the smallest magnitude": predicted.value(quantity="ceiling"),
            "norm of every off-diagonal block": predicted.value(quantity="block_norm"),
            "R² of linear growth": line.r_squared,
            "R² of exponential growth": power.r_squared,
        },
    )


def _equivalent(predicted: Rows, measured: Rows) -> Verdict:
    depth = measured.where(quantity="ratio", kind="xavier").levels("depth")[-1]
    one, xavier = (_mean(measured, kind, depth) for kind in ("one_shortcut", "xavier"))
    gap = xavier.value - one.value
    error = float(np.hypot(one.error or 0.0, xavier.error or 0.0))
    return holds_if(
        abs(gap) < max(4 * error, 0.1),
        "a plain network with Xavier weights is worse conditioned by orders of "
        "magnitude",
        {
            f"log10 ratio of 1-shortcut at depth {depth}": one,
            f"log10 ratio of Xavier at depth {depth}": xavier,
            "gap": Number(gap, error),
        },
    )


def _rotation(predicted: Rows, measured: Rows) -> Verdict:
    rows = measured.where(quantity="rotated_gap")
    gap, straight = rows.values(), rows.values("unrotated")
    return holds_if(
        float(gap.max()) < 1e-10 < float(straight.min()),
        "every eigenvalue of an orthogonal network is one of a 1-shortcut network at "
        "zero whose labels are turned by the network's own map",
        {
            "largest deviation": float(gap.max()),
            "least deviation without the rotation": float(straight.min()),
        },
    )


def _conventions(predicted: Rows, measured: Rows) -> Verdict:
    rows = measured.where(kind="conventions")
    percentile = {
        f"percentile read '{row['method']}'": Number(row["value"], row["error"])
        for row in rows.where(quantity="percentile")
    }
    least = rows.value(quantity="convention_least")
    most = rows.value(quantity="convention_most")
    values = [number.value for number in percentile.values()]
    return holds_if(
        max(values) / min(values) > 1.001 and most / least > 1.05,
        "the value at zero depends on choices that the paper does not state",
        {
            **percentile,
            "least cond(M) over signs and orders": least,
            "most cond(M) over signs and orders": most,
        },
    )


def _autodiff(predicted: Rows, measured: Rows) -> Verdict:
    gaps = measured.where(quantity="autodiff_gap").values()
    ratios = measured.where(quantity="autodiff_ratio")
    worst = max(
        abs(
            row["value"]
            / measured.value(
                quantity="ratio",
                kind=row["kind"],
                depth=row["depth"],
                trial=row["trial"],
            )
            - 1
        )
        for row in ratios
    )
    return holds_if(
        float(gaps.max()) < 1e-10 and worst < 1e-6,
        "second moments give the Hessian that double backward measures on the samples",
        {
            "largest deviation of an entry": float(gaps.max()),
            "largest relative deviation of a ratio": float(worst),
            "networks compared": len(gaps),
        },
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
        rival="no difference between the two on the same seeds",
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
            "Shortcuts of length 1 are essentially equivalent to no shortcuts at all."
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
            "$O_r$ and labels turned by $Q = O_R \\cdots O_1$, and for those only."
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
            "The reported ratio depends on how the percentile is read between order "
            "statistics and on the signs and order of principal components and "
            "classes; none is stated."
        ),
        printed="$|\\lambda|_{(0.1)}$, the 10th percentile, of whitened MNIST",
        corrected=(
            "linear interpolation, components by falling variance with their largest "
            "entry positive, classes in order"
        ),
        check=_conventions,
        rival="a number that no convention moves",
    ),
    Claim(
        name="moments-suffice",
        place="Appendix B, method of the Hessian",
        statement=(
            "The Hessian of a linear network depends on the data through "
            "$\\Sigma^{XX}$ and $\\Sigma^{YX}$ alone."
        ),
        check=_autodiff,
        rival="a dependence on the samples beyond second moments",
    ),
)
