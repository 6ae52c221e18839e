"""What theorem 2 claims of the Hessian, judged from rows."""

import numpy as np

from theodolite.core import Claim, Kind, Number, Rows, Verdict, holds_if
from theodolite.studies.li2016demystifying.judging import EXACT, largest, smallest


def _zero_hessian(predicted: Rows, measured: Rows) -> Verdict:
    high = largest(measured.where(lambda row: row.get("n") in (3, 4)), "max_entry")
    two = smallest(measured, "max_entry", n=2)
    return holds_if(
        high.value == 0.0 and two.value > 0,
        {"largest entry, n = 3 and 4": high, "largest entry, n = 2": two},
        holds="every second derivative is exactly 0 for n = 3 and 4, and not for n = 2",
        fails="a second derivative survives for n = 3 or 4, or none does for n = 2",
    )


def _two_form(predicted: Rows, measured: Rows) -> Verdict:
    off, spread = largest(measured, "off_pattern"), largest(measured, "unit_spread")
    return holds_if(
        off.value < EXACT and spread.value < EXACT,
        {
            "entries outside the pattern": off,
            "difference between units": spread,
            "coupling of units at n = 1, for contrast": smallest(measured, "coupling"),
        },
        holds="only the two blocks that join the matrices of one unit are non-zero, "
        "and they are the same in every unit",
        fails="there are entries outside the blocks of a unit, or units differ",
    )


def _two_entries(predicted: Rows, measured: Rows) -> Verdict:
    right = largest(measured, "entries")
    plain = smallest(measured, "entries_without_commutation")
    turned = smallest(measured, "entries_transposed")
    return holds_if(
        right.value < EXACT < min(plain.value, turned.value),
        {
            "deviation": right,
            "deviation without the commutation matrix": plain,
            "deviation with M transposed": turned,
        },
        holds="the block is c (I ⊗ M) times the commutation matrix, entry by entry",
        fails="the block is not as printed, or a rival fits as well",
    )


def _two_spectrum(predicted: Rows, measured: Rows) -> Verdict:
    right = largest(measured, "spectrum")
    rival = smallest(measured, "spectrum_of_eigenvalues")
    index = measured.where(quantity="index")
    exact = bool(np.all(index.values() == 0.5))
    return holds_if(
        right.value < EXACT < rival.value and exact,
        {
            "deviation of any eigenvalue": right,
            "deviation with eigenvalues of M": rival,
            "index": Number(float(index.values().mean()), index[0]["error"]),
        },
        holds="all eigenvalues are ± c times the singular values of M, each sign once "
        "a unit and coordinate",
        fails="eigenvalues or their multiplicities are not those of Eq 26",
    )


def _two_condition(predicted: Rows, measured: Rows) -> Verdict:
    worst, spread, error = 0.0, 0.0, 0.0
    for row in predicted.where(quantity="condition"):
        labels = {"setting": row["setting"], "trial": row["trial"]}
        rows = measured.where(quantity="condition", n=2, **labels)
        found = rows.values()
        worst = max(worst, float(np.max(np.abs(found / row["value"] - 1))))
        spread = max(spread, float(np.ptp(found) / found.mean()))
        error = max(error, float(np.max(rows.values("error") / found)))
    units = measured.where(quantity="largest", n=1).levels("units")
    linear = measured.where(quantity="largest", n=1, setting="linear")
    ends = [linear.where(units=u).values() for u in (units[0], units[-1])]
    grows = float(np.min(ends[1] / ends[0]))
    return holds_if(
        worst < 1e-8 and spread < 1e-8 and grows > 1.5,
        {
            "relative deviation from Eq 9": Number(worst, error),
            "relative change over depths": Number(spread, error),
            "least growth of the largest eigenvalue at n = 1": Number(
                grows, grows * linear[0]["error"]
            ),
        },
        holds=f"cond(H) equals Eq 9 and is the same from {units[0]} to {units[-1]} "
        "units, over which n = 1 grows",
        fails="cond(H) is not that of Eq 9, or changes with depth",
    )


def _saddle(predicted: Rows, measured: Rows) -> Verdict:
    gradient = largest(measured, "gradient_norm", n=2)
    rows = measured.where(quantity="lowest", n=2)
    place = int(np.argmax(rows.values()))
    lowest = Number(rows[place]["value"], rows[place]["error"])
    return holds_if(
        gradient.value < EXACT and lowest.value < -(lowest.error or 0.0),
        {"gradient norm": gradient, "highest of the lowest eigenvalues": lowest},
        holds="the gradient vanishes and the lowest eigenvalue is negative on every "
        "dataset",
        fails="the gradient does not vanish, or a dataset has no negative eigenvalue",
    )


def _one_form(predicted: Rows, measured: Rows) -> Verdict:
    spread = largest(measured, "block_spread")
    turned = largest(measured, "transposed_above")
    coupled = smallest(measured, "coupling", n=1)
    return holds_if(
        max(spread.value, turned.value) < EXACT < coupled.value,
        {
            "difference between blocks of a kind": spread,
            "difference of upper from transposed lower": turned,
            "size of the coupling": coupled,
        },
        holds="blocks depend only on the side of the diagonal, and those above are the "
        "transposes of those below",
        fails="blocks change along a diagonal, or those above are no transposes",
    )


def _one_entries(predicted: Rows, measured: Rows) -> Verdict:
    rows = measured.where(n=1, setting="linear")
    diagonal = largest(rows, "printed_diagonal")
    lower = largest(rows, "printed_lower")
    rival = smallest(rows, "lower_without_commutation")
    return holds_if(
        max(diagonal.value, lower.value) < EXACT < rival.value,
        {
            "deviation of B": diagonal,
            "deviation of A": lower,
            "deviation of A without the commutation matrix": rival,
        },
        holds="with identity activations A and B are as printed",
        fails="A or B is not as printed, or fits without the commutation matrix too",
    )


def _one_general(predicted: Rows, measured: Rows) -> Verdict:
    rows = measured.where(n=1, setting="general")
    right = largest(rows, "closed_form")
    diagonal = smallest(rows, "printed_diagonal")
    lower = smallest(rows, "printed_lower")
    return holds_if(
        right.value < EXACT < min(diagonal.value, lower.value),
        {
            "deviation of the general blocks": right,
            "least deviation of the printed B": diagonal,
            "least deviation of the printed A": lower,
        },
        holds="with other activations the printed blocks do not apply and the general "
        "ones are exact",
        fails="the general blocks are off, or the printed ones fit as well",
    )


CLAIMS = (
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
        rival="magnitudes of the eigenvalues of $M$ in place of its singular values",
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
        rival="$A$ without the commutation matrix",
    ),
    Claim(
        name="one-shortcut-general",
        place="Theorem 2.3, Eqs 27–32",
        kind=Kind.ERRATUM,
        statement=(
            "Theorem 2.3 is for any activations, but its blocks are given for identity "
            "ones only: an omission, filled here."
        ),
        printed=(
            "$B = \\Sigma^{XX} \\otimes I$, $A = (I \\otimes M)P^T + B$, in the case "
            "$\\sigma_{pre}=\\sigma_{post}=id$"
        ),
        corrected=(
            "$B = p_1^2\\,\\Sigma^{ss} \\otimes I + p_2\\,\\delta_{i_1 i_2}"
            "E[(x-y)_{i_1}s_{j_1}s_{j_2}]$ and $A = p_1^2\\,(\\Sigma^{ss} \\otimes I + "
            "\\delta_{j_1 i_2}E[(x-y)_{i_1}\\sigma_{pre}'(x_{j_1})s_{j_2}])$ with "
            "$s=\\sigma_{pre}(x)$, $p_1=\\sigma_{post}'(0)$, $p_2=\\sigma_{post}''(0)$"
        ),
        check=_one_general,
        rival="the printed blocks also for $\\sigma_{pre}=\\exp$",
    ),
)
