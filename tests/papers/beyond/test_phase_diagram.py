"""The phase diagram: its verdicts, and counterfactuals."""

from collections import Counter

import pytest

from tests.studies.counterfactuals import claim_of, const, refused, rows_of, study_tests
from theodolite import figures
from theodolite.core import Kind, PredictedAndMeasured, Rows
from theodolite.studies import find
from theodolite_papers.beyond.phase_diagram.config import (
    DIVERGES,
    STUCK,
    TRAINS,
    data_of,
    phase_of,
)
from theodolite_papers.beyond.phase_diagram.figure import COLOURS, LABELS
from theodolite_papers.li2016demystifying.shared.optima import least_loss

STUDY = "phase_diagram"
VERDICTS = {
    "most-foretold": "UNDECIDED",
    "errors-are-late-divergence": "FAILS",
    "two-shortcut-trains-widest": "FAILS",
}
# Claim, side, quantity, labels, change: a counterfactual that turns the verdict.
COUNTERFACTUALS = [
    ("phases-foretold", "m", "phase", {}, const(TRAINS)),
    ("phases-foretold", "m", "foretold", {}, const(TRAINS)),
    ("most-foretold", "m", "foretold", {}, const(STUCK)),
    ("errors-are-late-divergence", "m", "phase", {}, const(DIVERGES)),
    ("two-shortcut-trains-widest", "m", "phase", {},
     lambda row: TRAINS if row["kind"] == "two_shortcut" else STUCK),
]  # fmt: skip


# Shares that agree exactly over three seeds may agree by chance.
TestStudy = study_tests(STUDY, COUNTERFACTUALS, VERDICTS, copies={"most-foretold": 3})
test_what_cannot_be_run_is_refused = refused(
    STUDY, ({"depths": (8,)}, "multiples of 6")
)


def test_nothing_of_it_is_the_papers():
    assert {claim.kind for claim in find(STUDY).study.claims} == {Kind.BEYOND}


def test_runs_of_one_network_are_not_counted_as_many(smoke_root):
    """However many runs one seed has, it is one network: nothing is decided."""
    study, both = rows_of(smoke_root, STUDY)
    alone = PredictedAndMeasured(both.predicted, both.measured.where(trial=0))
    assert len(alone.measured.where(quantity="phase")) >= 80
    for claim in study.claims:
        assert claim.rule(alone).outcome == "UNDECIDED", claim.name


def test_seeds_that_disagree_widen_a_share(smoke_root):
    """All runs of a seed fail together: a binomial error would not see it."""
    study, both = rows_of(smoke_root, STUDY)
    ends = {
        tuple(row[name] for name in LABELS): row["value"]
        for row in both.measured.where(quantity="phase")
    }

    def told(row):
        end = ends[tuple(row[name] for name in LABELS)]
        return end if row["trial"] == 0 or row["lr"] > 0.005 else (end + 1) % 3

    told_rows = Rows(
        {**row, "value": told(row)} if row["quantity"] == "foretold" else row
        for row in both.measured
    )
    found = claim_of(study, "most-foretold").rule(
        PredictedAndMeasured(both.predicted, told_rows)
    )
    assert found.judged.quantity.value > 0.85
    assert found.outcome == "UNDECIDED"


def test_a_phase_that_is_never_foretold_has_no_share(smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    claim = claim_of(study, "most-foretold")
    shares = {f"share of foretold {n} that happened" for n in ("stays", "successes")}
    assert shares < claim.rule(both).asides.keys()
    never = Rows(
        {**row, "value": TRAINS} if row["quantity"] == "foretold" else row
        for row in both.measured
    )
    told = claim.rule(PredictedAndMeasured(both.predicted, never)).asides
    assert shares & told.keys() == {"share of foretold successes that happened"}


def test_every_network_and_rate_is_foretold_and_trained(smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    config = study.presets["smoke"]
    runs = len(study.cells(config)) * len(config.rates)
    ends = both.measured.where(quantity="phase")
    assert len(ends) == len(both.measured.where(quantity="foretold")) == runs
    assert set(ends.values()) == {0, 1, 2}


def test_what_there_is_to_gain_is_the_same_on_both_roads(smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    best = both.predicted.value(quantity="optimal_loss")
    fitted = least_loss(*data_of(study.presets["smoke"]))
    assert fitted == pytest.approx(best, rel=1e-12)


def test_tiles_show_what_most_runs_did(smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    (drawing,) = study.drawings
    table = drawing.table(both)
    tiles = len(both.measured.where(quantity="phase", trial=0))
    assert len(table) == tiles
    with figures.house_style():
        figure = drawing.draw(table)
    dots = Counter()
    for line in (line for panel in figure.axes for line in panel.lines):
        dots[line.get_color()] += len(line.get_xdata())
    said = {colour: len(table.where(wrong=True, foretold=phase))
            for phase, colour in COLOURS.items()}  # fmt: skip
    assert dots == said
    assert sum(said.values()) > 0


@pytest.mark.parametrize(
    ("end", "phase"),
    [
        (float("nan"), DIVERGES),
        (float("inf"), DIVERGES),
        (6.0, DIVERGES),
        (5.0, STUCK),
        (1.4, STUCK),
        (1.3, TRAINS),
        (0.9, TRAINS),
    ],
)
def test_phases_by_the_last_loss(end, phase):
    assert phase_of(end, start=5.0, best=0.9) == phase
