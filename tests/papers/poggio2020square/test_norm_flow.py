"""Flows of norms: verdicts and counterfactuals."""

import pytest

from tests.studies.counterfactuals import (
    const,
    first,
    rows_of,
    scale,
    shift,
    study_tests,
)
from theodolite.core import ConfigError
from theodolite_papers.poggio2020square.norm_flow.config import Config
from theodolite_papers.poggio2020square.shared.rows import limit

STUDY = "norm_flow"
ERRATA = (
    "decay-for-a-multiplier",
    "projected-twice",
    "rate-of-squares",
    "depth-counted-twice",
    "samples-lost-count",
    "dimension-of-minimisers",
    "sphere-repels",
    "norm-grows-monotonically",
    "smallest-norm-first",
    "growth-is-logistic",
    "deep-is-slow",
    "rest-without-pull",
    "norm-at-least-one",
    "noise-lowers-the-norm",
    "rest-at-kinks",
)
TORCH, ONE = {"case": "torch"}, {"case": "one input"}
LARGE, SMALL = {"rho": 1000.0}, {"rho": 0.05}
REST, ABOVE, BELOW = {"place": "rest"}, {"place": "above"}, {"place": "below"}
SHARES = "norm-tells-outputs-of-zero-and-one"
# Claim, side, quantity, labels, change: a counterfactual that turns the verdict.
COUNTERFACTUALS = [
    ("structural-lemma", "m", "lemma_gap", {}, first(const(1.0))),
    ("outputs-at-most-one", "m", "output", {}, first(const(1.5))),
    ("outputs-at-most-one", "m", "ascended", {}, first(const(1.1))),
    ("outputs-at-most-one", "m", "ascended", {}, first(const(0.5))),
    ("gradients-by-weights", "m", "gradient_gap", {}, first(const(0.1))),
    ("gradients-by-weights", "m", "gradient_as_is_gap", {}, const(0.0)),
    ("samples-lost-count", "p", "layer_norm_speed", {}, scale(1 / 6)),
    ("samples-lost-count", "p", "mean_layer_norm_speed", {}, first(scale(2.0))),
    ("dimension-of-minimisers", "m", "free_of_units_printed", {}, const(0.0)),
    ("dimension-of-minimisers", "m", "free_of_weights", {}, first(const(1.0))),
    ("flow-of-the-norm", "m", "norm_speed", {}, first(scale(0.5))),
    ("flow-of-the-norm", "m", "held_norm", {}, first(scale(1.1))),
    ("flow-of-the-weights", "m", "velocity", {}, first(scale(-1.0))),
    ("flow-of-the-weights", "m", "multiplier", {}, first(scale(-1.0))),
    ("flow-of-the-weights", "m", "radial", {}, first(const(0.1))),
    ("flow-of-plain-weights", "p", "plain_velocity", {}, scale(6.0)),
    ("flow-of-plain-weights", "m", "plain_by_labels", {}, first(scale(2.0))),
    ("flow-of-plain-weights", "m", "plain_by_outputs", {}, first(scale(-1.0))),
    ("own-gradients-leave-the-norm", "m", "ray_gap", {}, first(const(0.1))),
    ("own-gradients-leave-the-norm", "m", "ray_layer_speed", {}, first(const(0.1))),
    ("own-gradients-leave-the-norm", "m", "ray_norm_speed", REST, first(const(0.1))),
    ("own-gradients-leave-the-norm", "m", "ray_norm_speed", ABOVE, const(0.0)),
    ("own-gradients-leave-the-norm", "m", "ray_norm_speed", BELOW, const(0.0)),
    (SHARES, "m", "shares_norm", {}, first(scale(1.1))),
    (SHARES, "m", "times_least", {}, first(const(1.1))),
    (SHARES, "m", "times_most", {}, first(const(0.9))),
    ("norm-at-rest", "m", "equilibrium", {"case": "decay"}, const(1.0)),
    ("decay-of-a-library", "m", "equilibrium", TORCH, const(1.4 / 0.55)),
    ("layers-grow-alike", "m", "square_rate", {}, first(scale(2.0))),
    ("norm-of-layers", "p", "layered_norm", {}, first(scale(1.1))),
    ("norm-of-layers", "p", "transient", {}, first(scale(1.1))),
    ("small-starts-are-slow", "m", "transient", {"start": 0.001}, const(0.1)),
    ("small-starts-are-slow", "m", "transient", {"layers": 8}, scale(0.1)),
    ("descent-meets-the-flow", "p", "flow_norm", {}, shift(0.1)),
    ("descent-meets-the-flow", "p", "flow_weights", {}, shift(0.1)),
    ("decay-for-a-multiplier", "m", "radial_eq_21", {}, const(0.0)),
    ("decay-for-a-multiplier", "m", "radial_eq_21_corrected", {}, first(const(0.1))),
    ("projected-twice", "m", "radial_eq_23", {}, const(0.0)),
    ("rate-of-squares", "p", "square_rate", {}, first(scale(2.0))),
    ("depth-counted-twice", "p", "layer_norm_speed", {}, first(scale(2.0))),
    ("sphere-repels", "m", "sphere_rate", LARGE, const(-1.0)),
    ("sphere-repels", "m", "sphere_rate", SMALL, first(const(1.0))),
    ("sphere-repels", "p", "sphere_rate", SMALL, first(scale(2.0))),
    ("norm-grows-monotonically", "m", "drop", {}, const(0.0)),
    ("norm-grows-monotonically", "m", "wrong_way", {}, first(const(1.0))),
    ("norm-grows-monotonically", "m", "peak", {}, first(scale(1.1))),
    ("smallest-norm-first", "m", "end", ONE, const(1.0)),
    ("smallest-norm-first", "m", "invariant", ONE, shift(0.1)),
    ("growth-is-logistic", "p", "logistic_gap", {}, const(0.0)),
    ("growth-is-logistic", "p", "logistic_gap", {"layers": 2}, const(0.1)),
    ("deep-is-slow", "m", "transient", {"start": 0.001}, const(1.0)),
    ("rest-without-pull", "m", "rest_pull", {}, const(0.0)),
    ("rest-without-pull", "m", "rest_balance", {}, first(const(0.1))),
    ("norm-at-least-one", "m", "equilibrium", {}, const(1.5)),
    ("norm-at-least-one", "m", "equilibrium", {"case": "separable"}, const(0.9)),
    ("noise-lowers-the-norm", "m", "noise_shift", {}, const(-0.1)),
    ("noise-lowers-the-norm", "m", "one_noise", {}, const(-0.1)),
    ("rest-at-kinks", "m", "first_residual", {}, const(0.0)),
    ("rest-at-kinks", "m", "clarke_residual", {}, first(const(0.2))),
    ("rest-at-kinks", "m", "kinks", {}, const(0.0)),
    ("rest-at-kinks", "p", "slides", {}, const(0.0)),
]  # fmt: skip


TestStudy = study_tests(
    STUDY,
    COUNTERFACTUALS,
    dict.fromkeys(ERRATA, ("FAILS", "HOLDS")),
)


@pytest.mark.parametrize(
    ("quantity", "labels", "value"),
    [
        ("held_norm", {"time": 1.0}, 1.582073778),
        ("held_norm", {"time": 5.0}, 2.183881959),
        ("layered_norm", {"layers": 2}, 1.326129201),
        ("layered_norm", {"layers": 4}, 2.566980657),
        ("equilibrium", {"case": "torch"}, 2.5),
        ("equilibrium", {"case": "average"}, 0.3914590747),
        ("end", {"case": "one input"}, 1.157890134),
        ("peak", {"case": "one input with decay"}, 1.132375773),
        ("peak", {"case": "two inputs"}, 1.1255799347),
    ],
)
def test_descent_and_flow_come_to_known_values(quantity, labels, value, smoke_root):
    _, both = rows_of(smoke_root, STUDY)
    for road in (both.predicted, both.measured):
        (row,) = road.where(quantity=quantity, **labels)
        assert row["value"] == pytest.approx(value, abs=row["error"] + 1e-8)
        assert row["value"] == pytest.approx(value, rel=1e-3)


def test_a_flow_does_slide_and_says_from_when(smoke_root):
    _, both = rows_of(smoke_root, STUDY)
    slides = both.predicted.where(quantity="slides").values()
    since = both.predicted.where(quantity="slides_from").values()
    assert slides.any()
    assert (since[slides == 1] < Config().end).all()


def test_the_limit_of_steps_is_exact_for_a_parabola():
    value, error = limit([1 + h + 3 * h**2 for h in (0.4, 0.2, 0.1)])
    assert value == pytest.approx(1.0, abs=1e-14)
    assert error == pytest.approx(0.06, abs=1e-12)


@pytest.mark.parametrize("rates", [(0.1,), (0.1, 0.03), (0.1, 0.2)])
def test_rates_that_do_not_halve_are_refused(rates):
    with pytest.raises(ConfigError, match="do not halve"):
        Config(rates=rates)


def test_counts_of_outputs_are_not_what_the_norm_tells(smoke_root):
    """Norms follow the spread of outputs, and are least where they are 0 or 1."""
    _, both = rows_of(smoke_root, STUDY)
    norms = {
        spread: both.measured.where(quantity="shares_norm", spread=spread).values()
        for spread in (0.05, 20.0)
    }
    assert norms[0.05].mean() < 1.3 < norms[20.0].mean()
