"""Margins and bounds: verdicts and counterfactuals."""

import pytest

from tests.studies.counterfactuals import (
    const,
    first,
    scale,
    study_tests,
)
from theodolite.core import ConfigError
from theodolite_papers.poggio2020square.margins_and_bounds.config import Config

STUDY = "margins_and_bounds"
# What is printed, and for an erratum what is right; all others hold.
VERDICTS = {"ramp-is-above": ("FAILS", "HOLDS")}
# Claim, side, quantity, labels, change: a counterfactual that turns the verdict.
COUNTERFACTUALS = [
    ("widest-is-shortest", "m", "widest_margin", {}, first(scale(0.9))),
    ("widest-is-shortest", "p", "shortest_norm", {}, first(scale(1.1))),
    ("classifying-is-not-interpolating", "m", "largest_output", {}, const(1.0)),
    ("classifying-is-not-interpolating", "m", "excess_norm", {}, const(0.0)),
    ("classifying-is-not-interpolating", "m", "excess_norm", {}, first(const(-0.1))),
    ("complexity-is-proportional", "m", "complexity", {"norm": 3.0}, scale(3.0)),
    ("ramp-is-above", "m", "ramp_least_excess", {}, const(0.1)),
    ("ramp-is-above", "m", "ramp_least_excess", {}, first(const(-0.1))),
    ("bound-holds", "m", "share_of_bound", {}, scale(8.0)),
    ("bound-holds", "m", "share_of_bound", {}, scale(0.1)),
    ("bound-holds", "m", "uniform_bound", {}, first(const(1.1))),
    ("complexity-is-needed", "m", "share_of_complexity", {}, scale(0.1)),
    ("smaller-norm-smaller-bound", "m", "mean_margin", {"decay": 0.01}, scale(3.0)),
    ("smaller-norm-smaller-bound", "m", "fixed_bound", {"decay": 1.0}, scale(5.0)),
    ("bound-is-vacuous", "m", "fixed_bound", {}, first(const(0.9))),
    ("bound-is-vacuous", "m", "held_error", {}, const(0.6)),
]


TestStudy = study_tests(STUDY, COUNTERFACTUALS, VERDICTS)


def test_a_probability_is_between_0_and_1():
    with pytest.raises(ConfigError, match="delta is 2"):
        Config(delta=2.0)
