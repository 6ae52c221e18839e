"""What theorem 1 and its lemmas claim, judged from rows."""

import numpy as np

from theodolite.core import Claim, Kind, Number, Rows, Verdict, fit_line, holds_if
from theodolite.studies.li2016demystifying.judging import EXACT, largest, smallest

# What "maps exactly" is held to in double precision.
REACHED = 1e-9


def _lemma_one(predicted: Rows, measured: Rows) -> Verdict:
    gain, others = largest(measured, "gain"), largest(measured, "others_moved")
    norm, inside = largest(measured, "norm_gap"), smallest(measured, "inside_moved")
    return holds_if(
        max(gain.value, others.value, norm.value) < EXACT < inside.value,
        {
            "error of the step": gain,
            "movement of points ρ/2 away or more": others,
            "relative deviation of norms": norm,
            "least movement of a point 0.4ρ away": inside,
        },
        holds="one unit moves its point the whole step and no other that is ρ/2 away",
        fails="the step is not exact, others move, or norms are not √(8d)/ρ",
    )


def _lemma_two(predicted: Rows, measured: Rows) -> Verdict:
    clear, share = smallest(measured, "clearance"), largest(predicted, "length_share")
    straight = smallest(predicted, "straight")
    return holds_if(
        clear.value >= 0.5 - 1e-12 and share.value <= 1 and straight.value < 0.5,
        {
            "least distance on the way, in ρ": clear,
            "longest path as a share of the bound": share,
            "least distance on straight arcs, in ρ": straight,
            "most detours": largest(predicted, "detours"),
        },
        holds="samples keep ρ/2 apart all the way and paths are within the bound, also "
        "where straight arcs would come nearer",
        fails="samples come nearer than ρ/2, a path is too long, or none had to turn",
    )


def _interpolates(predicted: Rows, measured: Rows) -> Verdict:
    error = largest(measured, "output_error")
    units = measured.where(quantity="output_error").levels("units")
    return holds_if(
        error.value < REACHED,
        {
            "largest error of an output": error,
            "fewest units": units[0],
            "most units": units[-1],
        },
        holds="every network maps every sample to its label",
        fails="a sample does not reach its label",
    )


def _slopes(measured: Rows, quantity: str) -> np.ndarray:
    """Return the growth exponent of every set of points over the number of units."""
    rows = measured.where(quantity=quantity)
    found = []
    for case in rows.levels("case"):
        for trial in rows.where(case=case).levels("trial"):
            chosen = rows.where(case=case, trial=trial)
            units = np.log(np.array(chosen.column("units"), dtype=float))
            line = fit_line(units, np.log(chosen.values()))
            found.append((line.slope, line.slope_stderr))
    return np.array(found)


def _shrink(predicted: Rows, measured: Rows) -> Verdict:
    numbers: dict[str, Number | float] = {}
    worst = 0.0
    for quantity, name in (("max_norm", "matrices"), ("max_bias", "biases")):
        slopes, errors = _slopes(measured, quantity).T
        place = int(np.argmax(np.abs(slopes + 0.5)))
        numbers[f"exponent of {name}, furthest from -½"] = Number(
            float(slopes[place]), float(errors[place])
        )
        worst = max(worst, float(np.abs(slopes + 0.5).max()))
    return holds_if(
        worst < 0.02,
        numbers,
        holds="norms of matrices and biases fall as the root of the number of units",
        fails="norms do not fall as the root of the number of units",
    )


def _limit(predicted: Rows, measured: Rows) -> Verdict:
    worst, error = 0.0, 0.0
    for row in predicted.where(quantity="limit"):
        labels = {"case": row["case"], "trial": row["trial"]}
        found = measured.where(quantity="max_norm", **labels)
        units = max(found.column("units"))
        norm = found.only(units=units)
        worst = max(worst, abs(norm["value"] * np.sqrt(units) / row["value"] - 1))
        error = max(error, norm["error"])
    return holds_if(
        worst < 0.01,
        {"worst relative deviation from the limit": Number(worst, error)},
        holds="the largest norm times √R is √(8 m ℓ)/ρ, ℓ the longest path",
        fails="the largest norm times √R goes elsewhere",
    )


def _bracket(predicted: Rows, measured: Rows) -> Verdict:
    shares, excess = [], []
    error = 0.0
    for row in measured.where(quantity="max_norm"):
        labels = {key: row[key] for key in ("case", "trial", "units")}
        bound = predicted.value(quantity="bound", **labels)
        printed = predicted.value(quantity="printed", **labels)
        shares.append(row["value"] / bound)
        excess.append(printed / bound)
        error = max(error, row["error"] / bound)
    return holds_if(
        max(shares) <= 1 and min(shares) > 0.1 and max(excess) > 1.25 * min(excess),
        {
            "largest norm as a share of the corrected bound": Number(
                max(shares), error
            ),
            "smallest": Number(min(shares), error),
            "printed over corrected bound, least": Number(min(excess), 1e-12),
            "printed over corrected bound, most": Number(max(excess), 1e-12),
        },
        holds="norms stay within the corrected bound and near it, while the printed "
        "one is too large by a factor that grows with m and 1/ρ",
        fails="the corrected bound is broken, or the printed one is as near",
    )


def _symbols(predicted: Rows, measured: Rows) -> Verdict:
    rows = measured.where(quantity="max_norm")
    falls = []
    for case in rows.levels("case"):
        chosen = rows.where(case=case, trial=rows.where(case=case)[0]["trial"])
        falls.append(float(chosen.values().max() / chosen.values().min()))
    error, circle = largest(measured, "output_error"), largest(predicted, "circle")
    return holds_if(
        min(falls) > 1.5 and error.value < REACHED and circle.value < 1e-3,
        {
            "least fall of the norm over R, at n = 2": Number(
                min(falls), rows[0]["error"]
            ),
            "largest error of an output at n = 2": error,
            "least distance to others on a circle, the better way": circle,
        },
        holds="with shortcuts of n = 2 throughout, norms fall with R and samples reach "
        "their labels; in two dimensions they cannot pass one another",
        fails="norms do not change with R at fixed n, or a circle leaves room to pass",
    )


def _labels(predicted: Rows, measured: Rows) -> Verdict:
    found = {
        name: largest(measured, name)
        for name in (
            "label_distance",
            "distinct_labels",
            "digits",
            "norm_least",
            "norm_most",
            "refused",
            "rho_perturbed",
            "error_perturbed",
        )
    }
    value = {name: number.value for name, number in found.items()}
    return holds_if(
        value["label_distance"] == 0
        and value["refused"] == 1
        and value["norm_most"] > 1.1 * value["norm_least"]
        and value["rho_perturbed"] > 0.01
        and value["error_perturbed"] < REACHED,
        {
            "least distance of one-hot labels": found["label_distance"],
            "distinct labels": found["distinct_labels"],
            "samples": found["digits"],
            "least norm of a whitened digit": found["norm_least"],
            "largest norm of a whitened digit": found["norm_most"],
            "ρ with perturbed labels, inputs divided by their norm": found[
                "rho_perturbed"
            ],
            "output error then": found["error_perturbed"],
        },
        holds="with more samples than classes one-hot labels repeat, so ρ = 0, and "
        "whitened inputs do not have norm 1; perturbed and normalised, they can be "
        "interpolated",
        fails="labels are distinct, inputs have one norm, or perturbing does not help",
    )


def _trap(predicted: Rows, measured: Rows) -> Verdict:
    rows = measured.where(quantity="error_open", task="trap")
    rho = min(rows.levels("rho"))
    lost, kept = (
        smallest(rows, "error_open", rho=rho),
        largest(measured, "error_closed"),
    )
    exponent = measured.where(quantity="exponent").values()
    inside = (rows.values() < 1e-2) & (rows.values() > 0)
    line = fit_line(exponent[inside], np.log(rows.values()[inside]))
    nudged = smallest(measured, "error_nudged", rho=rho)
    return holds_if(
        kept.value < REACHED < 1e-3 < lost.value and abs(line.slope - 1) < 0.25,
        {
            f"least error from the path alone, ρ = {rho:g}": lost,
            "largest error from propagated samples": kept,
            "slope of ln(error) in √(8/ρ² - 1) ℓ": Number(
                line.slope, line.slope_stderr
            ),
            f"least error after a nudge of 1e-15 to the input, ρ = {rho:g}": nudged,
        },
        holds="weights from the path alone lose all digits at small ρ, at the rate of "
        "the linearised map; weights from propagated samples lose none",
        fails="rounding does not grow as predicted, or propagated samples miss too",
    )


CLAIMS = (
    Claim(
        name="one-step-a-unit",
        place="Lemma 1, Eqs 11–17",
        statement=(
            "A unit can move one unit vector by $d$ and leave all others alone that "
            "are $\\rho/2$ away, with both matrices of norm $\\sqrt{8d}/\\rho$."
        ),
        check=_lemma_one,
        rival="a point nearer than $\\rho/2$, which does move",
    ),
    Claim(
        name="clear-of-caps",
        place="Lemma 2, Eqs 18–19, Figure 10",
        statement=(
            "Samples can be walked to their labels one by one on paths that keep "
            "$\\rho/2$ from all others and are no longer than "
            "$\\pi(1 + \\rho(m-1)/2)$."
        ),
        check=_lemma_two,
        rival="straight arcs, which come nearer",
    ),
    Claim(
        name="interpolates-exactly",
        place="Theorem 1, Eqs 3–5",
        statement=(
            "There is a network of the form of Eq 3 that maps every sample to its "
            "label, for unit vectors with a least distance $\\rho$."
        ),
        check=_interpolates,
        rival="an error that stays",
    ),
    Claim(
        name="norms-shrink",
        place="Theorem 1, Eq 7",
        statement="Its weights are of order $R^{-1/2}$ in the number $R$ of units.",
        check=_shrink,
        rival="norms that stay, or fall like $1/R$",
    ),
    Claim(
        name="norm-limit",
        place="Theorem 1, Eqs 6 and 20",
        statement=(
            "The largest norm times $\\sqrt{R}$ tends to $\\sqrt{8 m \\ell}/\\rho$, "
            "$\\ell$ the length of the longest path."
        ),
        check=_limit,
        rival="the constant of the bound",
    ),
    Claim(
        name="bracket-under-the-root",
        place="Theorem 1, Eqs 6 and 20",
        kind=Kind.ERRATUM,
        statement=(
            "The bound has $m + 1/\\rho$ under the root: as printed it is true but "
            "too large by $\\sqrt{m + 1/\\rho}$; the step is $O(m(\\rho m+1)/R)$."
        ),
        printed="$\\sqrt{m/(n\\rho)}\\,(m + 1/\\rho)$, and $d \\geq O(m(\\rho m + 1))$",
        corrected=(
            "$\\frac{1}{\\rho}\\sqrt{8\\pi m\\,(1 + \\rho(m-1)/2)/R} = "
            "O(\\sqrt{\\frac{m}{R\\rho}(m + 1/\\rho)})$"
        ),
        check=_bracket,
        rival="norms that follow the printed expression",
    ),
    Claim(
        name="units-not-shortcuts",
        place="Assumption 1, Eqs 6, 7 and 20",
        kind=Kind.ERRATUM,
        statement=(
            "The $n$ of the theorem is the number $R$ of units, and $n \\geq 3$ of "
            "assumption 1 is $d_x \\geq 3$: on a circle nobody can step aside."
        ),
        printed="$n \\geq 3$, and norms of order $\\sqrt{1/n}$",
        corrected="$d_x \\geq 3$, and norms of order $\\sqrt{1/R}$",
        check=_symbols,
        rival="norms that do not change with $R$ while $n = 2$",
    ),
    Claim(
        name="labels-repeat",
        place="Assumptions 1 and 2",
        kind=Kind.ERRATUM,
        statement=(
            "The two assumptions contradict each other as soon as there are more "
            "samples than classes, and whitening does not give inputs norm 1."
        ),
        printed="one-hot labels with $d_{\\min} = \\rho > 0$; whitened, hence $|x|=1$",
        corrected=(
            "labels perturbed to distinct unit vectors, inputs divided by their norm"
        ),
        check=_labels,
        rival="distinct labels",
    ),
    Claim(
        name="rounding-grows",
        place="Lemma 1, theorem 1",
        kind=Kind.ERRATUM,
        statement=(
            "An omission: the construction is exact on paper only. A deviation grows "
            "by $\\exp(\\sqrt{8/\\rho^2-1}\\,\\ell)$ along a path."
        ),
        printed="weights from the path alone, Eqs 15–17",
        corrected="each unit built from the samples as the units before it leave them",
        check=_trap,
        rival="an error of the size of rounding",
    ),
)
