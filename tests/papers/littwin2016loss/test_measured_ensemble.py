"""Eq 16 against real networks: verdicts, and counterfactuals."""

from dataclasses import replace

import numpy as np
import pytest

from tests.studies.counterfactuals import (
    claim_of,
    const,
    first,
    rows_of,
    scale,
    shift,
    study_tests,
    with_change,
)
from theodolite.core import ConfigError, Rows
from theodolite_papers.littwin2016loss.measured_ensemble.config import Config
from theodolite_papers.littwin2016loss.measured_ensemble.measure import ensemble
from theodolite_papers.littwin2016loss.shared.enumeration import propagated

STUDY = "measured_ensemble"
# Three small networks a size decide little.
OPEN = (
    "beta-is-rho",
    "peak-below-half",
    "peak-below-half-untied",
    "deeper-than-eq-16",
    "width-of-a-squared-binomial",
    "width-of-layers-is-no-matter",
    "norms-overstate",
    "gradient-deeper-than-output",
    "no-branch-is-spare",
)
UNIT, HE = {"scale": "unit"}, {"scale": "he"}


def about(value):
    """Networks that differ by little: equal ones might be so by chance."""
    return lambda row: value * (1 + 0.01 * row["trial"])


COUNTERFACTUALS = [
    ("beta-is-rho", "m", ("beta", "beta_less_open"), {}, about(3.0)),
    ("beta-is-rho", "m", "distance", {}, about(0.5)),
    ("peak-below-half", "m", "peak_share", {}, about(0.7)),
    ("peak-below-half-untied", "m", "peak_share", UNIT, about(0.7)),
    ("scale-sets-depth", "m", "length", HE, const(1.5)),
    ("narrow-band", "m", "spread_share", UNIT, lambda row: 0.01 * row["depth"]),
    ("deeper-than-eq-16", "m", "deeper", {}, about(0.3)),
    ("deeper-than-eq-16", "m", "deeper", HE, about(-0.3)),
    ("width-of-a-squared-binomial", "m", "over_squared", UNIT, about(4.0)),
    ("width-of-layers-is-no-matter", "m", "beta", UNIT,
     lambda row: row["width"] ** about(2.0)(row)),
    ("norms-overstate", "m", "gain_beta", UNIT, about(0.1)),
    ("gradient-deeper-than-output", "m", "length", {"part": "gradient"}, const(0.5)),
    ("deletions-add-up", "m", "deletion_gap", {}, first(shift(1e-6))),
    ("gates-make-up", "m", "true_over_frozen", {}, scale(2.0)),
    ("no-branch-is-spare", "m", "true_change", {},
     lambda row: row["depth"] ** about(2.0)(row)),
]  # fmt: skip


TestStudy = study_tests(STUDY, COUNTERFACTUALS, dict.fromkeys(OPEN, "UNDECIDED"))


@pytest.mark.parametrize(("measured", "wanted"), [(0.001, "HOLDS"), (0.3, "UNDECIDED")])
def test_beta_is_rho_under_every_reading_or_depends_on_it(measured, wanted, smoke_root):
    """Gates that open more often than coins turn one of the readings."""
    study, both = rows_of(smoke_root, STUDY)
    world = {"beta": 0.5, "distance": 0.01, "beta_less_open": measured}
    for quantity, value in world.items():
        both = with_change(both, "m", quantity, about(value))
    sure = Rows({**row, "error": 1e-9} for row in both.measured)
    ruling = claim_of(study, "beta-is-rho").rule(replace(both, measured=sure))
    assert str(ruling.outcome) == wanted


def test_ensembles_are_those_of_the_paper_s_own_recursion():
    """The vector polynomials of Eq 7, written out for one network."""
    cell = {"scale": "he", "width": 8, "depth": 6, "trial": 1, "told": "sums"}
    config = Config(samples=4, widths=(8, 9, 10), width=8, depths=(6, 7, 8), depth=6)
    network, x, reading = ensemble(config, tuple(cell.items()))
    matrices = [network.matrix(layer).detach().numpy() for layer in range(6)]
    energy = np.zeros(6)
    for point in x.numpy():
        signal, gates = point, []
        for layer, matrix in enumerate(matrices):
            branch = signal @ matrix
            gates.append(branch > 0)
            signal = np.maximum(branch, 0) + (signal if layer else 0)
        energy += propagated(matrices, gates, point) ** 2 / len(x)
    np.testing.assert_allclose(reading.energy[0], energy, rtol=1e-9)


def test_rows_agree_with_the_ensemble_they_come_from(smoke_root):
    _, both = rows_of(smoke_root, STUDY)
    assert both.measured.where(quantity="residual").values().max() < 1e-12
    one = {"scale": "unit", "width": 16, "depth": 12, "trial": 0}
    shares = both.measured.where(quantity="share", **one)
    lengths = np.array(shares.column("length"))
    mean = both.measured.value(quantity="length", part="output", **one)
    assert shares.values() @ lengths == pytest.approx(mean)
    law = both.predicted.where(quantity="share", scale="unit", depth=12)
    gap = both.measured.value(quantity="deeper", **one)
    wanted = (mean - law.values() @ np.array(law.column("length"))) / 12
    assert gap == pytest.approx(wanted)


@pytest.mark.parametrize(
    "bad", [{"depths": (2, 3)}, {"depth": 11}, {"samples": 1}, {"widths": (8, 16)}]
)
def test_configs_that_measure_nothing_are_refused(bad):
    with pytest.raises(ConfigError):
        Config(**bad)


def test_single_paths_are_all_there_and_drawn(smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    told = {drawing.name: drawing for drawing in study.drawings}["unravelled"]
    table = told.table(both)
    assert len(table) == 2**4
    assert {row["path"].count("1") for row in table} == {0, 1, 2, 3, 4}
    assert len(told.draw(table).axes) == 1
