"""What carries over to ReLU networks, judged from rows."""

import numpy as np

from theodolite.core import (
    Claim,
    Kind,
    Number,
    Rows,
    Verdict,
    estimate,
    fit_line,
    holds_if,
)
from theodolite.studies.li2016demystifying.judging import EXACT, largest, smallest


def _decomposition(predicted: Rows, measured: Rows) -> Verdict:
    whole, newton = largest(measured, "whole"), largest(measured, "gauss_newton")
    without = smallest(measured, "without_residual")
    gates = smallest(measured, "open_gates")
    return holds_if(
        max(whole.value, newton.value) < EXACT < min(without.value, gates.value),
        {
            "deviation of the whole": whole,
            "deviation of the Gauss–Newton part": newton,
            "least deviation without the residual part": without,
            "least deviation with all gates open": gates,
            "processor time of double backward over ours": largest(
                measured, "speed_ratio"
            ),
        },
        holds="Gauss–Newton plus the terms between layers is the whole Hessian, at "
        "random weights of any size and along training",
        fails="the decomposition is not exact, or a part of it would do",
    )


def _no_within(predicted: Rows, measured: Rows) -> Verdict:
    relu, smooth = largest(measured, "within"), largest(measured, "within_tanh")
    return holds_if(
        relu.value < EXACT < smooth.value,
        {
            "largest residual entry within a layer, ReLU": relu,
            "the same with tanh": smooth,
            "least distance to a kink": smallest(measured, "margin"),
        },
        holds="the error adds nothing to the blocks of a layer with itself, as it does "
        "with tanh",
        fails="the error adds to the blocks of a layer with itself, or tanh has none",
    )


def _limit(predicted: Rows, measured: Rows) -> Verdict:
    rows = measured.where(quantity="limit_gap")
    slopes = []
    for trial in rows.levels("trial"):
        chosen = rows.where(trial=trial)
        scale = np.log(np.array(chosen.column("scale"), dtype=float))
        slopes.append(fit_line(scale, np.log(chosen.values())))
    worst = min(slopes, key=lambda line: line.slope)
    least = min(rows.levels("scale"))
    near = largest(rows, "limit_gap", scale=least)
    return holds_if(
        worst.slope > 1.5 and near.value < 1e-3,
        {
            "least exponent of the distance in the weights": Number(
                worst.slope, worst.slope_stderr
            ),
            f"largest distance at {least:g} of Xavier": near,
        },
        holds="the spectrum tends to ± the singular values of half-space moments, with "
        "the square of the weights",
        fails="the spectrum does not tend to that of half-space moments",
    )


def _by_depth(predicted: Rows, quantity: str) -> list[tuple[int, np.ndarray]]:
    rows = predicted.where(quantity=quantity)
    return [(u, rows.where(units=u).values()) for u in rows.levels("units")]


def _trend(predicted: Rows, quantity: str) -> Number:
    """Exponent in the number of units, error from the spread over networks."""
    groups = _by_depth(predicted, quantity)
    x = np.log([float(units) for units, _ in groups])
    lever = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
    logs = [estimate(np.log(values)) for _, values in groups]
    slope = float(lever @ [log.mean for log in logs])
    return Number(slope, float(np.sqrt(lever**2 @ [log.stderr**2 for log in logs])))


def _strays(predicted: Rows, quantity: str) -> float:
    """Worst distance of a depth's mean from that of all, in standard errors."""
    groups = [estimate(values) for _, values in _by_depth(predicted, quantity)]
    weight = np.array([1 / g.stderr**2 for g in groups])
    centre = float(weight @ [g.mean for g in groups] / weight.sum())
    return max(abs(g.mean - centre) / g.stderr for g in groups)


def _distribution(predicted: Rows, measured: Rows) -> Verdict:
    numbers: dict[str, Number | float] = {}
    strays = []
    for quantity, name in (("mean", "|λ|"), ("mean_square", "λ²")):
        strays.append(_strays(predicted, quantity))
        numbers[f"mean {name}: furthest depth, in standard errors"] = strays[-1]
        every = estimate(predicted.where(quantity=quantity).values())
        numbers[f"mean {name}"] = Number(every.mean, every.stderr)
    near = largest(measured, "limit_gap", scale=min(measured.levels("scale")))
    numbers["distance of measured spectra from the limit"] = near
    return holds_if(
        max(strays) < 4 and near.value < 1e-3,
        numbers,
        holds="averages over the spectrum are the same at every depth",
        fails="averages over the spectrum change with depth",
    )


def _condition(predicted: Rows, measured: Rows) -> Verdict:
    trend, top = _trend(predicted, "condition"), _trend(predicted, "largest")
    return holds_if(
        abs(trend.value) < 4 * (trend.error or 0) and abs(trend.value) < 0.05,
        {
            "exponent of the condition number": trend,
            "of the largest over the tenth percentile": _trend(predicted, "ratio"),
            "of the largest eigenvalue": top,
        },
        holds="the condition number of ReLU networks near zero does not see depth",
        fails="the condition number of ReLU networks near zero grows with depth",
    )


def _extremes(predicted: Rows, measured: Rows) -> Verdict:
    top, worst = _trend(predicted, "largest"), _trend(predicted, "condition")
    ceiling = predicted.only(quantity="ceiling")
    most = largest(predicted, "largest")
    bulk = _strays(predicted, "mean")
    rises = min(t.value - 4 * (t.error or 0) for t in (top, worst))
    return holds_if(
        rises > 0 and most.value <= ceiling["value"] and bulk < 4,
        {
            "exponent of the largest eigenvalue": top,
            "exponent of the condition number": worst,
            "largest eigenvalue of all": most,
            "its ceiling": Number(ceiling["value"], ceiling["error"]),
            "mean |λ|: furthest depth, in standard errors": bulk,
        },
        holds="extremes spread with the number of hidden units drawn, under a ceiling "
        "set by the data, while averages stay",
        fails="extremes do not spread with depth, or pass the ceiling",
    )


CLAIMS = (
    Claim(
        name="relu-decomposition",
        place="Section 5.3.1, with Bishop (1992) of appendix B",
        statement=(
            "With ReLU at mid and no sample on a kink the Hessian is $E[J^T J]$ plus "
            "$E[(S_{kl} \\otimes P_k^T e\\,a_l^T)K]$ between layers $k > l$."
        ),
        check=_decomposition,
        rival="Gauss–Newton alone, or the linear network with all gates open",
    ),
    Claim(
        name="relu-within-layers",
        place="Assumption 3",
        statement="The error adds nothing to the block of a layer with itself.",
        check=_no_within,
        rival="a smooth activation, whose curvature adds there",
    ),
    Claim(
        name="relu-limit-at-zero",
        place="Theorem 2.2 for ReLU",
        statement=(
            "As weights shrink, the spectrum tends to $\\pm sv(M(w_j))$, the singular "
            "values of half-space moments."
        ),
        check=_limit,
        rival="another limit, such as that of Eq 26",
    ),
    Claim(
        name="relu-distribution-invariant",
        place="Theorem 2.2, abstract",
        statement=(
            "With ReLU at mid and small random weights, averages over the spectrum do "
            "not depend on depth."
        ),
        check=_distribution,
        rival="a spectrum that grows with depth, as for 1-shortcut networks",
    ),
    Claim(
        name="relu-condition-invariant",
        place="Abstract, theorem 2.2",
        statement=(
            "With nonlinearities too the condition number at the start does not depend "
            "on depth, here with ReLU at mid and small random weights."
        ),
        check=_condition,
        rival="a condition number that grows with depth",
    ),
    Claim(
        name="relu-extremes-spread",
        place="Abstract, theorem 2.2",
        kind=Kind.ERRATUM,
        statement=(
            "Each hidden unit draws its own half-space moment, so more units mean "
            "wider extremes: only the distribution is depth-invariant."
        ),
        printed=(
            "with or without nonlinearities, the condition number is depth-invariant"
        ),
        corrected=(
            "averages over the spectrum are; $|\\lambda|_{\\max}$ and the condition "
            "number rise with depth, the former at most to $E[|x-y|\\,|x|]$"
        ),
        check=_extremes,
        rival="extremes that stay",
    ),
)
