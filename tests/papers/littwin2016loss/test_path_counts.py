"""Eqs 1 to 13: verdicts and counterfactuals."""

import numpy as np

from tests.studies.counterfactuals import (
    check_verdicts,
    const,
    first,
    refused,
    scale,
    shift,
    study_tests,
)
from theodolite_papers.littwin2016loss.path_counts.config import Config
from theodolite_papers.littwin2016loss.shared.enumeration import (
    enumerate_paths,
    propagated,
)

STUDY = "path_counts"
PLAIN, RESIDUAL = {"network": "plain"}, {"network": "residual"}
CYCLIC, BY_INPUT = {"network": "cyclic"}, {"network": "by_input"}
UNEVEN, COINS = {"network": "uneven"}, {"network": "coins"}


def about(value):
    """Networks that differ by little: equal ones might be so by chance."""
    return lambda row: value * (1 + 0.01 * row["trial"])


# Claim, side, quantity, labels, change: a counterfactual that turns the verdict.
COUNTERFACTUALS = [
    ("plain-output-is-paths", "m", "output_gap", PLAIN, first(shift(1e-6))),
    ("plain-output-is-paths", "m", "ungated_gap", PLAIN, first(const(0.0))),
    ("plain-output-is-paths", "m", "mass", PLAIN, first(shift(1))),
    ("plain-output-is-paths", "p", "total", PLAIN, first(shift(1))),
    ("residual-output-is-paths", "m", "output_gap", RESIDUAL, first(shift(1e-6))),
    ("residual-output-is-paths", "m", "ungated_gap", RESIDUAL, first(const(0.0))),
    ("residual-output-is-paths", "m", "coefficient_gap", RESIDUAL, shift(1e-6)),
    ("paths-by-length", "p", "mass", RESIDUAL, first(shift(1))),
    ("paths-by-length", "m", "total", RESIDUAL, first(shift(1))),
    ("inputs-are-shared", "m", "open_paths", PLAIN, about(0.5)),
    ("inputs-are-shared", "m", "open_paths", RESIDUAL, about(0.5)),
    ("assumptions-do-not-hold", "m", "A1_holds", RESIDUAL, first(const(1.0))),
    ("assumptions-do-not-hold", "m", "A2_holds", RESIDUAL, first(const(1.0))),
    ("assumptions-do-not-hold", "m", "A3_holds", RESIDUAL, first(const(1.0))),
    ("assumptions-do-not-hold", "m", "A3_holds", CYCLIC, first(const(0.0))),
    ("one-chance-a-path", "m", "mean_gap", {"network": "plain_coins"},
     first(shift(1e-6))),
    ("one-chance-a-path", "m", "one_chance_gap", {"network": "plain_coins"},
     const(0.0)),
    ("chance-by-length", "m", "mean_gap", COINS, first(shift(1e-6))),
    ("chance-by-length", "m", "one_chance_gap", COINS, const(0.0)),
    ("chance-by-length", "m", "mean_terms_gap", CYCLIC, first(shift(1e-6))),
    ("equal-products", "m", "repeats_least", CYCLIC, first(shift(-1))),
    ("equal-products", "m", "repeats_most", BY_INPUT, first(shift(1))),
    ("equal-products", "m", "repeats_spread", UNEVEN, const(0.0)),
    ("second-moment-bounds", "m", "above_floor", CYCLIC, first(shift(-1e-6))),
    ("second-moment-bounds", "m", "below_ceiling", BY_INPUT, first(shift(-1e-6))),
    ("least-square-norm", "m", "over_norm", CYCLIC, const(1.0)),
    ("least-square-norm", "m", "over_square", CYCLIC, first(scale(1.01))),
    ("least-value-is-exact", "m", "approximate_gap", {}, first(shift(1e-6))),
    ("least-value-is-exact", "m", "unnormalised_gap", {}, const(0.0)),
    ("one-variable", "m", "correlation_least", CYCLIC, first(const(0.9))),
    ("one-variable", "m", "correlation_least", BY_INPUT, const(1.0)),
    ("largest-value-too", "m", "share_least", BY_INPUT, first(const(0.5))),
    ("largest-value-too", "m", "share_most", BY_INPUT, first(const(1.5))),
    ("inputs-independent", "m", "dependent_over_floor", CYCLIC, first(const(1.1))),
    ("output-has-a-sign", "m", "negative_outputs", RESIDUAL, first(const(1.0))),
    ("output-has-a-sign", "m", "negative_means", RESIDUAL, const(0.0)),
]  # fmt: skip


def test_verdicts_at_smoke(smoke_root):
    wanted = {"least-square-norm": ("FAILS", "HOLDS")}
    # Two networks a depth decide little of a mean.
    wanted["inputs-are-shared"] = "UNDECIDED"
    check_verdicts(smoke_root, STUDY, wanted)


TestStudy = study_tests(STUDY, COUNTERFACTUALS)


def test_two_layers_of_two_units_have_the_paths_one_can_count():
    one, two = np.array([[2.0, 3.0]]), np.array([[5.0, 7.0], [11.0, 13.0]])
    closed = [np.array([True, True]), np.array([True, False])]
    paths = enumerate_paths([one, two], gates=closed)
    assert sorted(paths.product) == [2, 3, 10, 14, 33, 39]
    assert sorted(paths.product[paths.open]) == [2, 3, 10, 33]
    assert list(paths.length) == [1, 1, 2, 2, 2, 2]
    by_length = propagated([one, two], closed, np.array([10.0]))
    np.testing.assert_allclose(by_length, [50, 430], rtol=1e-14)


test_a_network_that_cannot_be_listed_is_refused = refused(
    Config,
    ({"depths": (1,)}, "two lengths from depth 2 up"),
    ({"depths": (2, 9)}, "beyond depth 8"),
    ({"depths": ()}, "depths ()"),
    ({"samples": 3}, "samples is 3: pass an even number"),
)
