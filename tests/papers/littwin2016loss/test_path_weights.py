"""Theorems 1 and 2, lemma 4, Eqs 14 to 19: verdicts, and counterfactuals."""

from fractions import Fraction

import pytest

from tests.studies.counterfactuals import (
    check_counterfactual,
    const,
    first,
    refused,
    rows_of,
    scale,
    shift,
    study_tests,
)
from theodolite_papers.littwin2016loss.path_weights.config import Config
from theodolite_papers.littwin2016loss.shared.exact_weights import ExactWeights

STUDY = "path_weights"
PAPER, FIXED = {"setting": "paper"}, {"setting": "fixed"}
SMALL_SCALE, ONE, TWO = {"beta": 0.1}, {"beta": 1.0}, {"beta": 2.0}
# Claim, side, quantity, labels, change: a counterfactual that turns the verdict.
COUNTERFACTUALS = [
    ("weights-of-the-network", "m", "epsilon", {}, first(shift(1e-6))),
    ("chance-is-the-scale", "m", "beta_less_chance", PAPER, first(shift(1e-6))),
    ("chance-is-the-scale", "m", "beta_less_chance", {"setting": "distinct"},
     const(0.0)),
    ("below-half-depth", "p", "peak_share", {"chance": 0.9}, const(0.5)),
    ("peak-limit", "m", "peaks_apart", {}, first(const(1.0))),
    ("peak-limit", "p", "peak_off_by", {}, first(shift(2.0))),
    ("entropy-limit", "m", "entropy_scaled", {}, first(scale(2.0))),
    ("narrow-band", "p", "deep_missing", {}, shift(1e-6)),
    ("tail-bound", "m", "tail_over_bound", {}, first(const(1.1))),
    ("legendre-asymptotic", "m", "asymptotic_scaled", {}, first(shift(3.0))),
    ("every-length-attained", "m", "inside_missed", {}, first(const(1.0))),
    ("every-length-attained", "m", "outside_missed", {}, first(const(1.0))),
    ("large-scale-and-depth", "m", "depth_less_peak_large", {}, first(const(1.0))),
    ("large-scale-and-depth", "m", "depth_less_peak_below", {}, first(const(0.0))),
    ("large-scale-and-depth", "p", "depth_less_peak", {}, first(const(0.0))),
    ("scale-shifts-the-ensemble", "m", "peak_least", SMALL_SCALE, const(60.0)),
    ("scale-shifts-the-ensemble", "m", "peak_least", TWO, const(40.0)),
    ("ends-at-the-printed-scale", "m", "printed_last_missed", {}, first(const(1.0))),
    ("ends-at-the-printed-scale", "m", "printed_first_missed", {}, first(const(1.0))),
    ("multiplier-favours-depth", "m", "multiplier_gain", {}, first(const(-0.1))),
    ("multiplier-with-normaliser", "m", "tied_gain", SMALL_SCALE, first(const(-0.1))),
    ("multiplier-with-normaliser", "m", "tied_gain", TWO, first(const(0.1))),
    ("normaliser-asymptotic", "m", "sum_asymptotic_scaled", {}, first(const(3.0))),
    ("normaliser-asymptotic", "m", "sum_without_root_scaled", {}, first(const(1.0))),
    ("depth-less-one-suffices", "m", "last_missed", {}, first(const(1.0))),
    ("depth-less-one-suffices", "m", "tie_at_last_missed", {}, first(const(1.0))),
    ("depth-less-one-suffices", "m", "depth_less_peak_below", {}, first(const(0.0))),
    ("sum-from-one", "m", "first_share", {}, const(0.0)),
    ("sum-from-one", "m", "line_one", {"length": 1}, scale(1.1)),
    ("factor-of-the-lines", "m", "line_one", {}, first(scale(1.1))),
    ("factor-of-the-lines", "p", "line_two", {"length": 2}, scale(1.5**0.5)),
    ("mirror-turns-the-scale", "m", "same_scale_gap", {}, const(0.0)),
    ("mirror-turns-the-scale", "m", "mirror_gap", {}, first(shift(1e-6))),
    ("mirror-turns-the-scale", "p", "missing_over_bound", {}, first(const(1.1))),
    ("legendre-from-zero", "m", "legendre_less_sum", {}, const(0.0)),
    ("legendre-from-zero", "m", "legendre_less_whole_sum", {}, first(shift(0.01))),
    ("intervals-of-scale", "m", "half_off_by", {}, const(0.0)),
    ("intervals-of-scale", "m", "ends_missed", {}, first(const(1.0))),
    ("intervals-of-scale", "m", "half_off_by", {"depth": 10}, const(0.5)),
    ("normaliser-depends-on-scale", "p", "slope", {}, first(shift(1e-6))),
    ("derivative-lacks-the-scale", "m", "slope_gap", {}, const(0.0)),
    ("derivative-lacks-the-scale", "m", "slope_times_scale_gap", {}, shift(1e-6)),
    ("wide-is-not-deep", "m", "beta", PAPER, lambda row: 0.1 * row["width"]),
    ("wide-is-not-deep", "m", "beta", PAPER, first(scale(2.0))),
    ("wide-is-not-deep", "m", "beta", FIXED, const(0.1)),
    ("tie-under-the-hypothesis", "m", "maximisers", ONE, first(const(1.0))),
    ("tie-under-the-hypothesis", "m", "maximisers", SMALL_SCALE, const(2.0)),
    ("tie-under-the-hypothesis", "m", "tie_off_by", ONE, first(const(1.0))),
    ("band-of-root-depth", "p", "log_spread", TWO, first(shift(0.2))),
    ("band-of-root-depth", "p", "variance_over_half", {}, scale(2.0)),
    ("band-of-root-depth", "p", "mean_off_by", {}, first(shift(2.0))),
    ("band-of-root-depth", "m", "moment_gap", {}, first(shift(1e-6))),
    ("normaliser-by-legendre", "m", "legendre_z_gap", TWO, first(shift(1e-6))),
    ("normaliser-by-legendre", "m", "direct_z_gap", ONE, first(shift(1e-6))),
    ("losses-are-not-affine", "m", "not_affine", {"loss": "hinge"}, const(0.0)),
]  # fmt: skip
ERRATA = (
    "sum-from-one",
    "factor-of-the-lines",
    "legendre-from-zero",
    "intervals-of-scale",
    "normaliser-depends-on-scale",
    "derivative-lacks-the-scale",
    "wide-is-not-deep",
)


TestStudy = study_tests(
    STUDY, COUNTERFACTUALS, dict.fromkeys(ERRATA, ("FAILS", "HOLDS"))
)


def test_slopes_as_printed_turn_where_autodiff_agrees_with_them(smoke_root):
    _, both = rows_of(smoke_root, STUDY)
    printed = {
        (row["depth"], row["length"]): row["value"]
        for row in both.predicted.where(quantity="printed_slope")
    }
    counterfactual = (
        "normaliser-depends-on-scale",
        "m",
        "slope",
        {},
        lambda row: printed[row["depth"], row["length"]],
    )
    check_counterfactual(smoke_root, STUDY, counterfactual)


@pytest.mark.parametrize(
    ("depth", "beta", "share"),
    [(2, 0.1, 0.990099), (10, 0.1, 0.513659)],
)
def test_what_the_sum_from_two_leaves_out(smoke_root, depth, beta, share):
    _, both = rows_of(smoke_root, STUDY)
    shares = both.measured.where(quantity="first_share")
    assert shares.value(depth=depth, beta=beta) == pytest.approx(share, abs=1e-6)


def test_the_lines_differ_as_in_the_audited_network(smoke_root):
    _, both = rows_of(smoke_root, STUDY)
    one = both.measured.where(quantity="line_one", trial=0).values()
    two = both.predicted.where(quantity="line_two").values()
    assert one / two == pytest.approx([1.2247448714] * 5, abs=1e-10)
    for line, variance in ((one, 152.755), (two, 101.837)):
        total = sum(c**2 * 4.0**r for r, c in enumerate(line, start=1))
        assert total == pytest.approx(variance, abs=1e-3)


@pytest.mark.parametrize(
    ("beta", "peak", "weight"), [(0.1, 10, 0.4391144721), (0.5, 34, 0.3459653506)]
)
def test_figure_1_has_its_peaks(smoke_root, beta, peak, weight):
    study, both = rows_of(smoke_root, STUDY)
    rows = {row["label"]: row for row in study.compare(both)}
    compared = rows[f"peak, depth 100, beta {beta:g}"]
    assert [compared[k] for k in ("predicted", "measured", "error")] == [peak, peak, 0]
    compared = rows[f"weight at the peak, depth 100, beta {beta:g}"]
    assert compared["predicted"] == pytest.approx(weight, abs=1e-10)
    assert compared["measured"] == pytest.approx(weight, abs=1e-10)
    assert 0 < compared["error"] < 1e-15


def test_whole_numbers_know_the_tie_of_nine_layers():
    weights = ExactWeights(depth=9, beta=Fraction(1, 2))
    assert weights.maximisers == [3, 4]
    mean, variance = weights.moments()
    assert float(mean) == pytest.approx(3.5768187066, abs=1e-10)
    assert float(variance) == pytest.approx(0.9503055853, abs=1e-10)
    assert ExactWeights(depth=10, beta=Fraction(2)).square_sum == 305998100


test_depths_that_do_not_fit_are_refused = refused(
    Config,
    ({"depths": (25, 100)}, "pass multiples of 20"),
    ({"depths": (20,)}, "of the first also 100"),
    ({"deep": (100, 1000)}, "at least three"),
    ({"small_depths": (1,)}, "from 2 up"),
    ({"small_depths": (11,)}, "up to 10"),
)


def test_the_network_tells_the_binomials_apart(smoke_root):
    _, both = rows_of(smoke_root, STUDY)
    weights = both.measured.where(quantity="epsilon", trial=0).values()
    other = both.predicted.where(quantity="other_epsilon").values()
    assert abs(weights - other).max() > 0.05
    copied = dict(enumerate(other, start=1))
    counterfactual = (
        "weights-of-the-network",
        "m",
        "epsilon",
        {},
        lambda r: copied[r["length"]],
    )
    check_counterfactual(smoke_root, STUDY, counterfactual)
