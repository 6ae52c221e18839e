"""What theorem 2 claims, and the errors around it, judged from rows."""

from collections.abc import Callable
from typing import Any

import numpy as np

from theodolite.core import Claim, Kind, Number, Rows, Verdict, holds_if

# Two roads in double precision meet to this fraction of the largest entry.
EXACT = 1e-10


def _largest(rows: Rows, quantity: str, **labels: Any) -> Number:
    """Return the largest magnitude of a quantity with its error."""
    return _number(rows.where(quantity=quantity, **labels), np.argmax)


def _smallest(rows: Rows, quantity: str, **labels: Any) -> Number:
    """Return the smallest magnitude of a quantity with its error."""
    return _number(rows.where(quantity=quantity, **labels), np.argmin)


def _number(rows: Rows, choose: Callable[[np.ndarray], Any]) -> Number:
    row = rows[int(choose(np.abs(rows.values())))]
    return Number(abs(row["value"]), row["error"])


def _stationary(predicted: Rows, measured: Rows) -> Verdict:
    orders = measured.where(quantity="order")
    numbers: dict[str, Number | float] = {}
    off = 0.0
    for n in orders.levels("n"):
        chosen = orders.where(n=n)
        values, errors = chosen.values(), chosen.values("error")
        numbers[f"order at n = {n}"] = Number(float(values.mean()), float(errors.max()))
        off = max(off, float(np.max(np.abs(values - n) - errors)))
    numbers["worst |order - n| beyond its error"] = max(off, 0.0)
    return holds_if(
        off < 0.1,
        "the loss leaves zero at order n along random directions, so every "
        "derivative of order 1 to n - 1 vanishes there",
        numbers,
    )


def _zero_hessian(predicted: Rows, measured: Rows) -> Verdict:
    high = _largest(measured.where(lambda row: row.get("n") in (3, 4)), "max_entry")
    two = _smallest(measured, "max_entry", n=2)
    return holds_if(
        high.value == 0.0 and two.value > 0,
        "every second derivative is exactly 0 for n = 3 and 4, and not for n = 2",
        {"largest entry, n = 3 and 4": high, "largest entry, n = 2": two},
    )


def _two_form(predicted: Rows, measured: Rows) -> Verdict:
    off = _largest(measured, "off_pattern")
    spread = _largest(measured, "unit_spread")
    coupled = _smallest(measured, "coupling", n=1)
    return holds_if(
        off.value < EXACT and spread.value < EXACT,
        "only the two blocks that join the matrices of one unit are non-zero, and "
        "they are the same in every unit",
        {
            "entries outside the pattern": off,
            "difference between units": spread,
            "coupling of units at n = 1, for contrast": coupled,
        },
    )


def _two_entries(predicted: Rows, measured: Rows) -> Verdict:
    right = _largest(measured, "entries")
    plain = _smallest(measured, "entries_without_commutation")
    turned = _smallest(measured, "entries_transposed")
    return holds_if(
        right.value < EXACT < min(plain.value, turned.value),
        "the block is c (I ⊗ M) times the commutation matrix, entry by entry",
        {
            "deviation": right,
            "deviation without the commutation matrix": plain,
            "deviation with M transposed": turned,
        },
    )


def _two_spectrum(predicted: Rows, measured: Rows) -> Verdict:
    gap = _largest(measured, "spectrum")
    index = measured.where(quantity="index").values()
    return holds_if(
        gap.value < EXACT and bool(np.all(index == 0.5)),
        "all eigenvalues are ± c times the singular values of M, each sign once a "
        "unit and coordinate",
        {"deviation of any eigenvalue": gap, "index": float(index.mean())},
    )


def _two_condition(predicted: Rows, measured: Rows) -> Verdict:
    worst, spread = 0.0, 0.0
    for row in predicted.where(quantity="condition"):
        labels = {"setting": row["setting"], "trial": row["trial"]}
        found = measured.where(quantity="condition", n=2, **labels).values()
        worst = max(worst, float(np.max(np.abs(found / row["value"] - 1))))
        spread = max(spread, float(np.ptp(found) / found.mean()))
    depths = [2 * units for units in measured.levels("units")]
    slope = np.log(depths[-1] / depths[0])
    return holds_if(
        worst < 1e-8 and spread < 1e-8,
        f"cond(H) equals Eq 9 and does not change from depth {depths[0]} to "
        f"{depths[-1]}",
        {
            "relative deviation from Eq 9": worst,
            "relative change over depths": spread,
            "log change if it grew linearly": float(slope),
        },
    )


def _saddle(predicted: Rows, measured: Rows) -> Verdict:
    gradient = _largest(measured, "gradient_norm", n=2)
    lowest = measured.where(quantity="lowest", n=2).values().max()
    return holds_if(
        gradient.value < EXACT and lowest < 0,
        "the gradient vanishes and the lowest eigenvalue is negative on every dataset",
        {"gradient norm": gradient, "highest of the lowest eigenvalues": float(lowest)},
    )


def _one_form(predicted: Rows, measured: Rows) -> Verdict:
    spread = _largest(measured, "block_spread")
    turned = _largest(measured, "transposed_above")
    coupled = _smallest(measured, "coupling", n=1)
    return holds_if(
        max(spread.value, turned.value) < EXACT < coupled.value,
        "blocks depend only on the side of the diagonal, and those above are the "
        "transposes of those below",
        {
            "difference between blocks of a kind": spread,
            "difference of upper from transposed lower": turned,
            "size of the coupling": coupled,
        },
    )


def _one_entries(predicted: Rows, measured: Rows) -> Verdict:
    rows = measured.where(n=1, setting="linear")
    diagonal = _largest(rows, "printed_diagonal")
    lower = _largest(rows, "printed_lower")
    return holds_if(
        max(diagonal.value, lower.value) < EXACT,
        "with identity activations A and B are as printed",
        {"deviation of B": diagonal, "deviation of A": lower},
    )


def _one_general(predicted: Rows, measured: Rows) -> Verdict:
    rows = measured.where(n=1, setting="general")
    right = _largest(rows, "closed_form")
    diagonal = _smallest(rows, "printed_diagonal")
    lower = _smallest(rows, "printed_lower")
    return holds_if(
        right.value < EXACT < min(diagonal.value, lower.value),
        "with other activations the printed blocks are off and the general ones exact",
        {
            "deviation of the general blocks": right,
            "least deviation of the printed B": diagonal,
            "least deviation of the printed A": lower,
        },
    )


def _bias_claim(predicted: Rows, measured: Rows) -> Verdict:
    flat = measured.where(task="bias", quantity="flat").values()
    return holds_if(
        bool(np.all(flat == 0)),
        "with biases there are flat directions in every unit, so the condition number "
        "is infinite, at every depth",
        {
            "fewest zero eigenvalues": float(flat.min()),
            "most zero eigenvalues": float(flat.max()),
        },
    )


def _bias_erratum(predicted: Rows, measured: Rows) -> Verdict:
    rows = measured.where(task="bias")
    gap = _largest(rows, "closed_form")
    flat = rows.where(quantity="flat").values()
    expected = rows.where(quantity="flat_expected").values()
    largest = rows.where(quantity="largest").values()
    theorem = rows.where(quantity="largest_of_theorem").values()
    shift = float(np.min(largest / theorem - 1))
    return holds_if(
        gap.value < EXACT and bool(np.array_equal(flat, expected)) and shift > 1e-6,
        "the bias adds the column E[x - y] to M and d zero eigenvalues a unit; the "
        "others keep their value at every depth",
        {
            "deviation of the corrected Hessian": gap,
            "zero eigenvalues a unit": float(
                flat.max() / max(measured.levels("units"))
            ),
            "least rise of the largest eigenvalue over theorem 2": shift,
        },
    )


def _relu_claim(predicted: Rows, measured: Rows) -> Verdict:
    rows = measured.where(task="relu")
    gap = _smallest(rows, "printed")
    return holds_if(
        gap.value < 0.01,
        "at small random weights the spectrum of a ReLU network is not that of Eq 26 "
        "with slope ½",
        _relu_numbers(rows),
    )


def _relu_erratum(predicted: Rows, measured: Rows) -> Verdict:
    rows = measured.where(task="relu")
    masked = _largest(rows, "half_space")
    printed = _smallest(rows, "printed")
    at_zero = _largest(rows, "max_entry_at_zero")
    return holds_if(
        masked.value < 1e-3 < printed.value and at_zero.value == 0,
        "the eigenvalues are ± the singular values of half-space moments, one for "
        "each row of the first matrices; at exactly zero autodiff gives 0",
        {
            **_relu_numbers(rows),
            "deviation of half-space moments": masked,
            "least deviation of Eq 26": printed,
            "largest entry at exactly zero": at_zero,
        },
    )


def _relu_numbers(rows: Rows) -> dict[str, Number | float]:
    first = rows.where(units=rows.levels("units")[-1])
    first = first.where(trial=first.levels("trial")[0])
    return {
        "cond measured (first dataset)": first.value(quantity="condition"),
        "cond of Eq 9": first.value(quantity="condition_printed"),
        "largest eigenvalue measured": first.value(quantity="largest"),
        "largest of Eq 26": first.value(quantity="largest_printed"),
    }


def _minimum_claim(predicted: Rows, measured: Rows) -> Verdict:
    low = _both_ways(measured)
    return holds_if(
        low >= 0,
        "for every n from 2 to 5 there is a direction in which the loss falls",
        {"highest of the lowest changes, in units of t^n": low},
    )


def _minimum_erratum(predicted: Rows, measured: Rows) -> Verdict:
    rise = measured.where(quantity="rise").values()
    mirror = measured.where(quantity="mirror").values()
    low = _both_ways(measured)
    opposite = bool(np.all(rise * mirror < 0))
    return holds_if(
        opposite and low < 0,
        "turning the sign of each unit's last matrix turns the sign of the change of "
        "the loss, so zero is a saddle for every n",
        {
            "highest of the lowest changes, in units of t^n": low,
            "worst mismatch of the two changes": float(
                np.max(np.abs(rise + mirror) / np.abs(rise))
            ),
        },
    )


def _both_ways(measured: Rows) -> float:
    rise = measured.where(quantity="rise").values()
    mirror = measured.where(quantity="mirror").values()
    return float(np.max(np.minimum(rise, mirror)))


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
        name="hessian-vanishes",
        place="Theorem 2.1",
        statement="For $n \\geq 3$ the Hessian at zero is the zero matrix.",
        check=_zero_hessian,
        rival="some second derivative survives, as it does for $n=2$",
    ),
    Claim(
        name="two-shortcut-form",
        place="Theorem 2.2, Eq 8, Figure 11",
        statement=(
            "For $n=2$ the Hessian is block diagonal over units, each with blocks "
            "$A$ and $A^T$ off its diagonal, and $A$ is the same in all units."
        ),
        check=_two_form,
        rival="units couple, as they do for $n=1$",
    ),
    Claim(
        name="two-shortcut-entries",
        place="Eqs 23–25",
        statement=(
            "$A = \\sigma_{mid}'(0)\\,\\sigma_{post}'(0)\\,(I \\otimes M)\\,P^T$ with "
            "$M = \\Sigma^{X\\sigma(X)} - \\Sigma^{Y\\sigma(X)}$ and $P$ the "
            "commutation matrix."
        ),
        check=_two_entries,
        rival="$M$ transposed, or $P$ left out",
    ),
    Claim(
        name="two-shortcut-spectrum",
        place="Theorem 2.2, Eqs 22 and 26",
        statement=(
            "The eigenvalues for $n=2$ are $\\pm$ the singular values of "
            "$\\sigma_{mid}'(0)\\,\\sigma_{post}'(0)\\,M$, each $dR$ times with each "
            "sign."
        ),
        check=_two_spectrum,
        rival="other multiplicities, or eigenvalues of $M$ in place of singular values",
    ),
    Claim(
        name="two-shortcut-condition",
        place="Theorem 2.2, Eq 9",
        statement=(
            "$\\mathrm{cond}(H) = \\sqrt{\\mathrm{cond}(M^T M)}$ for $n=2$, at every "
            "depth."
        ),
        check=_two_condition,
        rival="growth with depth, as for $n=1$",
    ),
    Claim(
        name="strict-saddle",
        place="Theorem 2.2",
        statement="For $n=2$ zero is a strict saddle unless $M$ is degenerate.",
        check=_saddle,
        rival="a minimum, or a saddle without negative curvature",
    ),
    Claim(
        name="one-shortcut-form",
        place="Theorem 2.3, Eq 10",
        statement=(
            "For $n=1$ the Hessian is block Toeplitz: $B$ on the diagonal, $A$ below "
            "it, $A^T$ above."
        ),
        check=_one_form,
        rival="$A$ above the diagonal, or blocks that change with distance",
    ),
    Claim(
        name="one-shortcut-entries",
        place="Eqs 27–32",
        statement=(
            "With $\\sigma_{pre}=\\sigma_{post}=id$, $B = \\Sigma^{XX} \\otimes I$ and "
            "$A = (I \\otimes M)\\,P^T + B$."
        ),
        check=_one_entries,
        rival="any other pair of blocks",
    ),
    Claim(
        name="one-shortcut-general",
        place="Eqs 27–32",
        kind=Kind.ERRATUM,
        statement=(
            "Theorem 2.3 is for any activations, but the blocks are printed for "
            "identity ones only and are wrong for others."
        ),
        printed="$B = \\Sigma^{XX} \\otimes I$, $A = (I \\otimes M)P^T + B$",
        corrected=(
            "$B = p_1^2\\,\\Sigma^{ss} \\otimes I + p_2\\,\\delta_{i_1 i_2}"
            "E[(x-y)_{i_1}s_{j_1}s_{j_2}]$ and $A = p_1^2\\,(\\Sigma^{ss} \\otimes I + "
            "\\delta_{j_1 i_2}E[(x-y)_{i_1}\\sigma_{pre}'(x_{j_1})s_{j_2}])$ with "
            "$s=\\sigma_{pre}(x)$, $p_1=\\sigma_{post}'(0)$, $p_2=\\sigma_{post}''(0)$"
        ),
        check=_one_general,
        rival="the printed blocks also for $\\sigma_{pre}=\\exp$",
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
