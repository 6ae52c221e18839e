"""What is claimed around theorem 2, judged from rows."""

from collections.abc import Callable
from typing import Any

import numpy as np

from theodolite.core import Claim, Kind, Number, Rows, Verdict, holds_if, undecided
from theodolite.studies.li2016demystifying.judging import EXACT, largest, smallest

# Spectra that agree to this fraction of the largest eigenvalue count as the same at
# small, not zero, weights.
ALIKE = 0.01


def _stationary(predicted: Rows, measured: Rows) -> Verdict:
    orders = measured.where(quantity="order")
    numbers: dict[str, Number | float] = {}
    off = unsure = 0.0
    for n in orders.levels("n"):
        chosen = orders.where(n=n)
        values, errors = chosen.values(), chosen.values("error")
        numbers[f"order at n = {n}"] = Number(float(values.mean()), float(errors.max()))
        off = max(off, float(np.max(np.abs(values - n))))
        unsure = max(unsure, float(errors.max()))
    numbers["worst |order - n|"] = Number(off, unsure)
    if unsure > 0.25:
        return undecided("the order changes with the step by more than ¼", numbers)
    return holds_if(
        off < 0.25,
        numbers,
        holds="the loss leaves zero at order n along random directions, so every "
        "derivative of order 1 to n - 1 vanishes there",
        fails="the loss leaves zero at another order than n",
    )


def _lemma(predicted: Rows, measured: Rows) -> Verdict:
    worst, missing, least = 0.0, largest(measured, "incomplete"), np.inf
    rows = measured.where(quantity="mixed")
    for row in rows:
        wanted = measured.value(quantity="expected", n=row["n"], trial=row["trial"])
        worst = max(worst, abs(row["value"] - wanted) - (row["error"] or 0.0))
        least = min(least, abs(row["value"]))
    error = float(np.max(rows.values("error")))
    high = smallest(measured.where(lambda r: r.get("n", 0) > 2), "mixed")
    return holds_if(
        worst < 1e-2 and missing.value < 10 * error and high.value > 100 * error,
        {
            "least derivative of order n, n > 2": high,
            "worst deviation from E[(x - y)x]": Number(max(worst, 0.0), error),
            "largest derivative over an incomplete chain": missing,
        },
        holds="derivatives of order n along a whole chain do not vanish, those over "
        "part of it do: the lemma is about order N, not 2",
        fails="a chain of n entries has no derivative, or part of one has",
    )


def _relu_curvature(predicted: Rows, measured: Rows) -> Verdict:
    rows = predicted.where(quantity="relu_curvature")
    scaled = [row["value"] * row["delta"] for row in rows]
    slopes = predicted.where(quantity="relu_slope").values()
    numbers: dict[str, Number | float] = {
        f"curvature on ± {row['delta']:g}": Number(row["value"], row["error"])
        for row in rows
    }
    numbers["slope on every interval"] = Number(float(slopes.mean()), 1e-9)
    spread = max(abs(value - 15 / 16) for value in scaled)
    return holds_if(
        spread < 1e-3 and bool(np.all(np.abs(slopes - 0.5) < 1e-6)),
        numbers,
        holds="the slope of the local polynomial is ½ on every interval, its curvature "
        "grows without bound as the interval shrinks",
        fails="the curvature of the local polynomial converges",
    )


def _bias_claim(predicted: Rows, measured: Rows) -> Verdict:
    rows = measured.where(task="bias")
    flat, relu = smallest(rows, "flat"), smallest(rows, "flat_relu")
    return holds_if(
        largest(rows, "flat").value == 0,
        {
            "fewest zero eigenvalues": flat,
            "most zero eigenvalues": largest(rows, "flat"),
            "fewest with ReLU at small weights": relu,
        },
        holds="no eigenvalue is zero, so the condition number is finite",
        fails="with biases there are flat directions in every unit, so the condition "
        "number is infinite, at every depth",
    )


def _bias_erratum(predicted: Rows, measured: Rows) -> Verdict:
    rows = measured.where(task="bias")
    right = largest(rows, "closed_form")
    flat = rows.where(quantity="flat").values()
    relu = rows.where(quantity="flat_relu").values()
    expected = rows.where(quantity="flat_expected").values()
    units = np.array(rows.where(quantity="flat").column("units"))
    ratio = (
        rows.where(quantity="largest").values()
        / rows.where(quantity="largest_of_theorem").values()
    )
    shift = float(np.min(ratio - 1))
    counted = np.array_equal(flat, expected) and np.array_equal(relu, expected)
    return holds_if(
        right.value < EXACT and counted and shift > 1e-6,
        {
            "deviation of the corrected Hessian": right,
            "zero eigenvalues a unit": Number(float((flat / units).mean()), 0.0),
            "the same with ReLU at small weights": Number(
                float((relu / units).mean()), 0.0
            ),
            "least rise of the largest eigenvalue over theorem 2": Number(
                shift, right.error
            ),
        },
        holds="the bias adds the column E[x - y] to M and d zero eigenvalues a unit; "
        "the others keep their value at every depth",
        fails="the corrected spectrum does not fit, or that of theorem 2 does",
    )


def _relu_claim(predicted: Rows, measured: Rows) -> Verdict:
    rows = measured.where(task="relu")
    best, worst = smallest(rows, "printed"), largest(rows, "printed")
    numbers = {
        **_relu_numbers(rows),
        "least deviation of a spectrum": best,
        "largest deviation of a spectrum": worst,
    }
    if best.value < ALIKE <= worst.value:
        return undecided("some networks follow the formula and others do not", numbers)
    return holds_if(
        worst.value < ALIKE,
        numbers,
        holds="at small weights ReLU networks have the spectrum of Eq 26 with slope ½",
        fails="at small random weights the spectrum of a ReLU network is not that of "
        "Eq 26 with slope ½",
    )


def _relu_erratum(predicted: Rows, measured: Rows) -> Verdict:
    rows = measured.where(task="relu")
    masked, printed = largest(rows, "half_space"), smallest(rows, "printed")
    origin = largest(rows, "origin")
    return holds_if(
        masked.value < 1e-3 < printed.value and origin.value == 0,
        {
            **_relu_numbers(rows),
            "deviation of half-space moments": masked,
            "least deviation of Eq 26": printed,
            "largest entry at exactly zero": origin,
        },
        holds="the eigenvalues are ± the singular values of half-space moments, one "
        "set for each row of the first matrices; at exactly zero autodiff gives 0",
        fails="half-space moments do not give the spectrum",
    )


def _relu_numbers(rows: Rows) -> dict[str, Number | float]:
    """Return the median network, with the quartiles' half-distance as its spread."""
    found: dict[str, Number | float] = {}
    for name, label in (("condition", "cond(H)"), ("largest", "largest eigenvalue")):
        for suffix, road in (("", "measured"), ("_printed", "of Eqs 9 and 26")):
            values = rows.where(quantity=name + suffix).values()
            low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
            found[f"median {label} {road}"] = Number(
                float(middle), float(high - low) / 2
            )
    return found


def _minimum_claim(predicted: Rows, measured: Rows) -> Verdict:
    low, error = _lowest(measured.where(n=2), np.min)
    return holds_if(
        low >= -error,
        {"lowest change of the loss at n = 2, in units of t²": Number(low, error)},
        holds="the loss rises in every direction tried",
        fails="for n = 2 there is a direction in which the loss falls",
    )


def _minimum_erratum(predicted: Rows, measured: Rows) -> Verdict:
    rise = measured.where(quantity="rise").values()
    mirror = measured.where(quantity="mirror").values()
    low, error = _lowest(measured, np.max)
    mismatch = float(np.max(np.abs(rise + mirror) / np.abs(rise)))
    return holds_if(
        bool(np.all(rise * mirror < 0)) and low < -error,
        {
            "highest of the lowest changes, in units of t^n": Number(low, error),
            "worst mismatch of the two changes": Number(
                mismatch, error / float(np.abs(rise).min())
            ),
        },
        holds="turning the sign of each unit's last matrix turns the sign of the "
        "change of the loss, so zero is a saddle for every n from 2 to 5",
        fails="the loss does not fall on either side for some n",
    )


def _lowest(measured: Rows, choose: Callable[..., Any]) -> tuple[float, float]:
    """Return an extreme over networks of the lower of the two changes."""
    rise, mirror = (measured.where(quantity=q) for q in ("rise", "mirror"))
    lower = np.minimum(rise.values(), mirror.values())
    return float(choose(lower)), float(rise.values("error").max())


CLAIMS = (
    Claim(
        name="stationary-order",
        place="Theorem 2.1, Definition 4",
        statement=(
            "For $n \\geq 2$ zero is a stationary point of order $n-1$: the loss "
            "changes by $O(t^n)$ along any direction."
        ),
        check=_stationary,
        rival="contact of order $n-1$ or $n+1$",
    ),
    Claim(
        name="lemma-3-order",
        place="Lemma 3",
        kind=Kind.ERRATUM,
        statement=(
            "A mixed derivative of order $N$ at zero is non-zero only if its entries "
            "meet every matrix of some unit; the lemma prints second derivatives."
        ),
        printed="$\\partial^2 L / \\partial w_1 \\cdots \\partial w_N$",
        corrected="$\\partial^N L / \\partial w_1 \\cdots \\partial w_N$",
        check=_lemma,
        rival="a derivative over part of a chain",
    ),
    Claim(
        name="biases-change-nothing",
        place="Section 4.1, after Eq 3",
        statement=(
            "The unit $x + W_2\\,\\sigma(W_1 x + b)$ of Eq 3 follows theorem 2, so its "
            "condition number is finite and depth-invariant."
        ),
        check=_bias_claim,
        rival="zero eigenvalues, hence an infinite condition number",
    ),
    Claim(
        name="biases-flatten",
        place="Section 4.1, after Eq 3",
        kind=Kind.ERRATUM,
        statement=(
            "A bias couples to $W_2$, which leaves $d$ flat directions in every unit; "
            "only the non-zero part of the spectrum is depth-invariant."
        ),
        printed="spectrum $\\pm c\\,sv(M)$, condition number as in Eq 9",
        corrected=(
            "spectrum $\\pm c\\,sv([M,\\; E(x-y)])$ and $d$ zeros a unit; condition "
            "number infinite"
        ),
        check=_bias_erratum,
        rival="the spectrum of theorem 2, shifted by nothing",
    ),
    Claim(
        name="relu-by-polynomial",
        place="Assumption 3 and the remark after it, Eq 9",
        statement=(
            "ReLU may be replaced by its local polynomial at zero, so a network with "
            "ReLU at mid has the Hessian of Eq 8 with slope $1/2$ near zero."
        ),
        check=_relu_claim,
        rival="a spectrum that depends on the directions of the small weights",
    ),
    Claim(
        name="relu-half-space-moments",
        place="Assumption 3, Eqs 9 and 26",
        kind=Kind.ERRATUM,
        statement=(
            "At small weights a ReLU sees half of the inputs, a different half for "
            "each row $w_j$ of $W_1$; $M/2$ is only the average over $\\pm w_j$."
        ),
        printed="eigenvalues $\\pm\\frac{1}{2}\\,sv(M)$",
        corrected=(
            "eigenvalues $\\pm sv(M(w_j))$, "
            "$M(w) = \\frac{1}{m}\\sum 1[w \\cdot x > 0]\\,(x-y)x^T$"
        ),
        check=_relu_erratum,
        rival="the smooth formula",
    ),
    Claim(
        name="relu-has-no-curvature",
        place="Assumption 3 and the remark after it",
        kind=Kind.ERRATUM,
        statement=(
            "The local polynomial of ReLU has a slope but no second derivative, which "
            "assumption 3 asks for and 1-shortcut networks with ReLU at post need."
        ),
        printed="a local polynomial approximation yields $\\sigma^{(k)}$, $k \\leq 2$",
        corrected=(
            "the best quadratic on $[-\\delta, \\delta]$ has slope $1/2$ and curvature "
            "$15/(16\\,\\delta)$, which diverges"
        ),
        check=_relu_curvature,
        rival="a curvature that converges",
    ),
    Claim(
        name="zero-is-a-minimum",
        place="Section 2",
        statement=(
            "Zero is a spurious local minimum of a network with shortcuts of length 2."
        ),
        check=_minimum_claim,
        rival="a direction in which the loss falls",
    ),
    Claim(
        name="zero-is-a-saddle",
        place="Section 2",
        kind=Kind.ERRATUM,
        statement=(
            "Zero is never a local minimum for $n \\geq 2$ unless $M = 0$: the leading "
            "form is odd in the last matrix of each unit."
        ),
        printed="spurious local minimum (such as the zero initial point)",
        corrected=(
            "a saddle of order $n-1$: $L(tV) - L(0)$ and $L(tV') - L(0)$ have opposite "
            "signs when $V'$ turns the sign of the last matrices"
        ),
        check=_minimum_erratum,
        rival="the loss rises in both directions",
    ),
)
