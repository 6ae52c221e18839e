"""Theorems 3 and 4: verdicts and counterfactuals."""

import pytest

from tests.studies.counterfactuals import (
    check_counterfactual,
    const,
    first,
    rows_of,
    scale,
    shift,
    study_tests,
)
from theodolite.core import ConfigError
from theodolite_papers.littwin2016loss.two_degree_losses.config import Config

STUDY = "two_degree_losses"
ERRATUM = ("FAILS", "HOLDS")
# What is printed, and for an erratum what is right; all others hold.
VERDICTS = {
    "growth-is-strict": ERRATUM,
    "sign-of-the-derivative": ERRATUM,
    "gradient-left-out": ERRATUM,
    "deep-square-twice": ERRATUM,
    "inverse-size-turns": ERRATUM,
}
FREE, NORM = {"kind": "free"}, {"kind": "norm"}
UNSKIPPED, WEAK = {"kind": "unskipped"}, {"kind": "weak"}
DOMINANT, FLAT = {"kind": "dominant"}, {"kind": "flat"}
# Claim, side, quantity, labels, change: a counterfactual that turns the verdict.
COUNTERFACTUALS = [
    ("unskipped-scales-grow", "m", "unskipped_growth", UNSKIPPED, first(const(-1.0))),
    ("unskipped-scales-grow", "m", "unskipped_derivative", UNSKIPPED,
     first(shift(1e-3))),
    ("unskipped-scales-grow", "p", "unskipped_force", UNSKIPPED, first(scale(2.0))),
    ("growth-is-strict", "m", "unskipped_pull", FLAT, const(1.0)),
    ("growth-is-strict", "m", "unskipped_growth", UNSKIPPED, first(const(-1.0))),
    ("skipped-scales-grow", "m", "skipped_growth", DOMINANT, first(const(-1.0))),
    ("skipped-scales-grow", "m", "skipped_derivative", DOMINANT, first(shift(1e-3))),
    ("skipped-scales-grow", "p", "skipped_force", DOMINANT, first(scale(2.0))),
    ("deep-dominance-not-needed", "m", "skipped_growth", WEAK, const(-1.0)),
    ("deep-dominance-not-needed", "m", "skipped_growth", WEAK, const(1.0)),
    ("deep-dominance-not-needed", "p", "skipped_force", WEAK, first(scale(2.0))),
    ("sign-of-the-derivative", "m", "unskipped_force", UNSKIPPED, const(-1.0)),
    ("sign-of-the-derivative", "m", "unskipped_signed", UNSKIPPED, first(const(1.0))),
    ("gradient-left-out", "m", "unskipped_pull", UNSKIPPED, const(1.0)),
    ("gradient-left-out", "p", "gradient_square", UNSKIPPED, scale(2.0)),
    ("deviations-held", "m", "scale_gap", {"held": False}, const(0.0)),
    ("deviations-held", "m", "scale_gap", {"held": True}, first(const(0.1))),
    ("norm-is-driven", "m", "norm_force", NORM, first(scale(2.0))),
    ("norm-is-driven", "m", "norm_derivative", NORM, first(shift(1e-3))),
    ("deep-square-twice", "p", "norm_force", NORM, first(scale(2.0))),
    ("inverse-size-turns", "p", "inverse_size_turn", FREE, first(scale(-1.0))),
    ("deep-gradients-stretch", "m", "bracket", {"kind": "deep_opposite"},
     first(const(-0.1))),
    ("deep-gradients-stretch", "m", "bracket", NORM, const(-0.1)),
    ("shallow-gradients-stretch-too", "m", "bracket", {"kind": "middle_opposite"},
     first(const(0.1))),
    ("shallow-gradients-stretch-too", "m", "bracket", {"kind": "shallow_opposite"},
     first(const(-0.1))),
    ("norm-grows-anyway", "m", "norm_growth", NORM, first(scale(0.5))),
    ("euler-of-the-parts", "m", "euler_free", FREE, first(scale(2.0))),
]  # fmt: skip


TestStudy = study_tests(STUDY, COUNTERFACTUALS, VERDICTS)


@pytest.mark.parametrize("pair", [(1, 2), (3, 3), (4, 2)])
def test_degrees_that_are_no_rising_pair_are_refused(pair):
    with pytest.raises(ConfigError, match="no rising pair"):
        Config(degrees=(pair,))


def test_the_rival_of_euler_is_told_apart(smoke_root):
    """Where normalised coefficients changed nothing the claim would not hold."""
    _, both = rows_of(smoke_root, STUDY)
    keys = ("shallow", "deep", "trial")
    euler = {
        tuple(row[k] for k in keys): row["value"]
        for row in both.predicted.where(quantity="euler", kind="free")
    }
    counterfactual = (
        "euler-of-the-parts",
        "m",
        "euler_tied",
        FREE,
        lambda row: euler[tuple(row[k] for k in keys)],
    )
    check_counterfactual(smoke_root, STUDY, counterfactual)
