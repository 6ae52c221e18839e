"""Collapse at every norm: what is said, and counterfactuals."""

import pytest

from tests.studies.counterfactuals import (
    claim_of,
    const,
    outcome_tests,
    refused,
    rows_of,
)
from theodolite_papers.poggio2020square.collapse_everywhere.config import (
    PRESETS,
    Config,
    cells,
    runs,
)
from theodolite_papers.poggio2020square.collapse_everywhere.measure import (
    sooner,
    stopping_gain,
)

STUDY = "collapse_everywhere"
# What three trials tell for sure; all else is for more of them.
SURE = {"at-each-global-minimum": "FAILS"}
NORMED = ("nc1", "nc2", "nc3", "nc4", "norm")
TRUE = {"labels": "given"}
END, SOLVED = {"stage": "end", "loss": "square"}, {"stage": "solved"}
OTHER = {"stage": "end", "loss": "cross_entropy"}
FREE = {"labels": "given", "decay": 0.0}
WRONG = {"labels": "flipped", "decay": 0.0}


def by_loss(square, other):
    return lambda row: square if row["loss"] == "square" else other


def by_norm(power):
    """Norms at the end rise with the start and fall with the decay."""
    return lambda row: (row["start"] / (0.001 + row["decay"])) ** power


def resting(value, **labels):
    """Properties with these labels, and norms that decay makes forget the start."""

    def change(row):
        if row["quantity"] == "norm":
            return 7.0 if row["decay"] else row["value"]
        matches = all(row.get(key) == label for key, label in labels.items())
        return value if matches else row["value"]

    return change


def by_classes(two, more):
    """The same with one value of two classes, and another of more."""

    def change(row):
        return resting(two if row["classes"] == 2 else more, **END)(row)

    return change


# Verdict, claim, quantity, labels, change: a counterfactual.
COUNTERFACTUALS = [
    ("HOLDS", "features-collapse", NORMED, TRUE, resting(0.01, **END)),
    ("FAILS", "features-collapse", NORMED, TRUE, resting(2.0, **END)),
    ("UNDECIDED", "features-collapse", NORMED, TRUE, by_classes(0.01, 2.0)),
    ("UNDECIDED", "features-collapse", "nc1", END, const(0.01)),
    ("HOLDS", "means-form-a-simplex", NORMED, TRUE, resting(0.01, **END)),
    ("FAILS", "means-form-a-simplex", NORMED, TRUE, resting(2.0, **END)),
    ("HOLDS", "heads-follow-means", NORMED, TRUE, resting(0.01, **END)),
    ("FAILS", "heads-follow-means", NORMED, TRUE, resting(2.0, **END, classes=2)),
    ("HOLDS", "nearest-means-decide", NORMED, TRUE, resting(0.0, **END)),
    ("FAILS", "nearest-means-decide", NORMED, TRUE, resting(0.3, **END, start=5.0)),
    ("HOLDS", "at-each-global-minimum", "nc1", SOLVED, const(1e-4)),
    ("FAILS", "at-each-global-minimum", "nc1", {**SOLVED, "classes": 3}, const(2.0)),
    ("FAILS", "at-each-global-minimum", "loss", SOLVED, const(0.1)),
    ("FAILS", "heads-follow-means", NORMED, TRUE, resting(0.1, **END)),
    ("UNDECIDED", "heads-follow-means", NORMED, TRUE, by_classes(0.01, 0.1)),
    ("HOLDS", "large-norms-collapse-less", "nc1", END, by_norm(1.0)),
    ("FAILS", "large-norms-collapse-less", "nc1", END, by_norm(-1.0)),
    ("HOLDS", "cross-entropy-collapses-too", NORMED, TRUE, resting(1e-4, **OTHER)),
    ("FAILS", "cross-entropy-collapses-too", NORMED, TRUE, resting(3.0, **OTHER)),
    ("FAILS", "cross-entropy-collapses-too", NORMED, TRUE,
     resting(0.5, **OTHER, quantity="nc4")),
    ("HOLDS", "square-is-good-sooner", "sooner", TRUE, const(2.0)),
    ("FAILS", "square-is-good-sooner", "sooner", TRUE, const(-2.0)),
    ("HOLDS", "who-is-sooner-depends-on-the-start", "sooner", FREE, const(-2.0)),
    ("FAILS", "who-is-sooner-depends-on-the-start", "sooner", FREE, const(2.0)),
    ("HOLDS", "square-overfits-late", "stopping_gain", FREE, by_loss(0.1, 0.0)),
    ("FAILS", "square-overfits-late", "stopping_gain", FREE, by_loss(0.1, 0.1)),
    ("FAILS", "square-overfits-late", "stopping_gain", FREE, by_loss(-0.1, 0.0)),
    ("UNDECIDED", "square-overfits-late", "stopping_gain", FREE,
     lambda row: 0.1 * (row["start"] < 1 or row["loss"] == "square")),
    ("HOLDS", "square-overfits-late", "stopping_gain", FREE, by_loss(0.1, -0.1)),
    ("HOLDS", "stopping-helps-square-more", "stopping_gain", FREE, by_loss(0.2, 0.0)),
    ("FAILS", "stopping-helps-square-more", "stopping_gain", FREE, by_loss(0.0, 0.2)),
    ("UNDECIDED", "stopping-helps-square-more", "stopping_gain", FREE,
     by_loss(0.2, 0.1)),
    ("HOLDS", "decay-keeps-from-overfitting", "stopping_gain", TRUE,
     by_loss(0.0, 0.1)),
    ("FAILS", "decay-keeps-from-overfitting", "stopping_gain", TRUE,
     by_loss(0.2, 0.0)),
    ("HOLDS", "wrong-labels-overfit-both", "stopping_gain", WRONG, const(0.1)),
    ("FAILS", "wrong-labels-overfit-both", "stopping_gain", WRONG, by_loss(0.1, -0.1)),
    ("HOLDS", "wrong-labels-harm-square-more", "stopping_gain", WRONG,
     by_loss(0.2, 0.1)),
    ("FAILS", "wrong-labels-harm-square-more", "stopping_gain", WRONG,
     by_loss(0.1, 0.2)),
    ("HOLDS", "decay-does-not-mend-labels", "stopping_gain", {"labels": "flipped"},
     const(0.1)),
    ("FAILS", "decay-does-not-mend-labels", "stopping_gain", {"labels": "flipped"},
     const(-0.1)),
]  # fmt: skip


@pytest.mark.parametrize("name", SURE)
def test_verdicts_at_smoke(name, smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    ruling = claim_of(study, name).rule(both)
    assert str(ruling.outcome) == SURE[name], ruling.judged.because


TestStudy = outcome_tests(STUDY, COUNTERFACTUALS, copies=4)


def test_chance_gains_nothing_by_stopping_early():
    # Best on one half by chance, it is no better on the other.
    assert stopping_gain([0.1, 0.2, 0.2], [0.2, 0.1, 0.15]) == pytest.approx(-0.025)
    assert stopping_gain([0.3, 0.2], [0.3, 0.2]) == 0.0


def test_the_worse_of_two_says_what_is_good():
    value, error = sooner({0: 0.9, 1: 0.4, 100: 0.1}, {0: 0.9, 1: 0.5, 10: 0.4})
    assert (value, error) == (pytest.approx(1.0), pytest.approx(1.0))


def test_the_paper_scale_has_all_runs():
    config = PRESETS["paper"]
    listed = cells(config)
    assert len(listed) == 50
    assert [len(runs(config, cell)) for cell in listed[:5]] == [12, 4, 8, 8, 8]
    assert [config.each(task) for task in config.tasks] == [5000, 3334, 1000]


test_settings_that_are_refused = refused(
    Config,
    ({"tasks": ((1, 2, 3), (1, 2))}, "tasks have"),
    ({"tasks": ((1, 2),)}, "tasks have"),
    ({"decays": (0.1, 0.0)}, "decays are"),
    ({"wrong": 1.0}, "wrong is 1.0"),
    ({"epochs": 10}, "epochs is 10"),
)
