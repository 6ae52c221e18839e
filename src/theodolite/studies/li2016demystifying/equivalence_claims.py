"""Where 1-shortcut and plain networks are the same, judged from rows."""

import numpy as np

from theodolite.core import Claim, Kind, Number, Rows, Verdict, estimate, holds_if
from theodolite.studies.li2016demystifying.judging import EXACT, largest, smallest


def _nonlinear(rows: Rows) -> Rows:
    return rows.where(lambda row: row.get("setting", "linear") != "linear")


def _identity(predicted: Rows, measured: Rows) -> Verdict:
    linear = largest(measured, "identity_gap", setting="linear")
    other = smallest(_nonlinear(measured), "identity_gap")
    return holds_if(
        linear.value < EXACT < other.value,
        {
            "deviation of Hessians, linear": linear,
            "least deviation with an activation": other,
        },
        holds="a linear 1-shortcut network at W is the plain network at I + W",
        fails="the two differ, or are the same with activations too",
    )


def _similar(predicted: Rows, measured: Rows) -> Verdict:
    rows = measured.where(setting="linear")
    matrix, spectrum = largest(rows, "matrix_gap"), largest(rows, "spectrum_gap")
    straight = smallest(rows, "unrotated_gap")
    return holds_if(
        max(matrix.value, spectrum.value) < EXACT < straight.value,
        {
            "deviation of turned Hessians": matrix,
            "deviation of eigenvalues": spectrum,
            "least deviation without turning the labels": straight,
        },
        holds="turned layer by layer, the Hessian of the 1-shortcut network is that of "
        "the plain orthogonal network, entry by entry",
        fails="the Hessians are not turned copies, or are without turning the labels",
    )


def _training(predicted: Rows, measured: Rows) -> Verdict:
    turned = largest(measured, "training_gap", kind="one_shortcut_turned")
    straight = smallest(measured, "training_gap", kind="one_shortcut")
    xavier = smallest(measured, "training_gap", kind="xavier")
    return holds_if(
        turned.value < EXACT < 1e-3 < min(straight.value, xavier.value),
        {
            "deviation of the loss, turned labels": turned,
            "least deviation, same labels": straight,
            "least deviation of Xavier weights": xavier,
        },
        holds="the losses of both networks agree at every step of gradient descent",
        fails="the losses part along training, or do not without turning the labels",
    )


def _survives(predicted: Rows, measured: Rows) -> Verdict:
    rows = _nonlinear(measured)
    least, most = smallest(rows, "spectrum_gap"), largest(rows, "spectrum_gap")
    return holds_if(
        most.value < 0.01,
        {"least deviation of a spectrum": least, "largest deviation": most},
        holds="with an activation the spectra agree as well",
        fails="with an activation before or after the matrix the spectra differ",
    )


def _ends(predicted: Rows, measured: Rows) -> Verdict:
    rows = measured.where(quantity="xavier_ratio")
    depths, gaps = rows.levels("depth"), {}
    for depth in depths:
        logs = [
            np.log10(row["value"])
            - np.log10(
                predicted.value(quantity="ratio", trial=row["trial"], depth=depth)
            )
            for row in rows.where(depth=depth)
        ]
        gaps[depth] = estimate(logs)
    first, last = gaps[depths[0]], gaps[depths[-1]]
    rate = (last.mean - first.mean) / (depths[-1] - depths[0])
    error = np.hypot(last.stderr, first.stderr) / (depths[-1] - depths[0])
    linear = largest(measured.where(setting="linear"), "spectrum_gap")
    other = smallest(_nonlinear(measured), "spectrum_gap")
    return holds_if(
        linear.value < EXACT < 1e-3 < other.value and rate - 2 * error > 0.05,
        {
            "deviation of spectra, linear and orthogonal": linear,
            "least deviation with an activation": other,
            "decades a layer between Xavier and 1-shortcut ratios": Number(
                float(rate), float(error)
            ),
        },
        holds="the equivalence is exact for linear networks with orthogonal weights, "
        "and ends with Xavier weights and with activations",
        fails="the equivalence does not hold where it should, or holds beyond",
    )


CLAIMS = (
    Claim(
        name="plain-at-identity",
        place="Abstract",
        statement=(
            "A linear 1-shortcut network with weights $W_r$ is the plain network with "
            "weights $I + W_r$: same loss, same Hessian."
        ),
        check=_identity,
        rival="a network with an activation, where it is not",
    ),
    Claim(
        name="orthogonal-hessian-similar",
        place="Abstract, section 5",
        statement=(
            "The Hessian of a plain linear network at orthogonal $O_r$ is that of the "
            "1-shortcut network at zero with labels $Q_R^T y$, turned by "
            "$Q_{r-1} \\otimes Q_r$, $Q_r = O_r \\cdots O_1$."
        ),
        check=_similar,
        rival="the same labels without the rotation",
    ),
    Claim(
        name="orthogonal-trains-the-same",
        place="Section 5",
        statement=(
            "1-shortcut networks train like linear networks with orthogonal "
            "initialisation: step for step, once labels are turned."
        ),
        check=_training,
        rival="the same labels without the rotation, or Xavier weights",
    ),
    Claim(
        name="equivalent-with-activations",
        place="Abstract",
        statement=(
            "With activations too, a shortcut of length 1 at zero is equivalent to "
            "none at orthogonal weights."
        ),
        check=_survives,
        rival="spectra that differ",
    ),
    Claim(
        name="equivalence-ends",
        place="Abstract",
        kind=Kind.ERRATUM,
        statement=(
            "A shortcut of length 1 is equivalent to none for linear networks with "
            "orthogonal weights only."
        ),
        printed="the shortcut 1 is essentially equivalent to no shortcuts",
        corrected=(
            "equal spectra for linear networks at orthogonal weights, labels turned; "
            "an exponential gap of condition numbers at Xavier weights; different "
            "spectra with activations"
        ),
        check=_ends,
        rival="spectra that agree with activations, or condition numbers with Xavier",
    ),
)
