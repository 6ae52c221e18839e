"""Figures 7 and 8: the verdicts, and worlds that turn them."""

import numpy as np
import pytest

from theodolite import figures
from theodolite.core import Rows
from theodolite.studies.li2016demystifying import (
    final_losses_linear,
    final_losses_relu,
)

STUDIES = {"linear": final_losses_linear, "relu": final_losses_relu}
BESIDE = final_losses_relu.BESIDE
# Verdicts of the committed runs that are not HOLDS.
OTHERWISE = {
    "two-shortcut-loss-invariant": "FAILS",
    "two-shortcut-lowest": "UNDECIDED",
    "orthogonal-worsens": "UNDECIDED",
    "one-shortcut-like-orthogonal": "UNDECIDED",
    "three-shortcut-stuck": "FAILS",
    "two-shortcut-lowest-relu": "FAILS",
    "two-shortcut-higher-rates-relu": "FAILS",
}


def committed(module):
    """Return predicted rows of the smallest scale, and the committed rows."""
    study = module.STUDY
    return study.predict(study.presets["smoke"]), module.RUN.rows()


@pytest.fixture(scope="module")
def rows():
    return {kind: committed(module) for kind, module in STUDIES.items()}


def claim(kind, name):
    return next(c for c in STUDIES[kind].STUDY.claims if c.name == name)


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, c.name) for kind, module in STUDIES.items() for c in module.STUDY.claims],
)
class TestEveryClaim:
    def test_verdict(self, kind, name, rows):
        verdict = claim(kind, name).check(*rows[kind])
        assert verdict.outcome == OTHERWISE.get(name, "HOLDS"), verdict
        assert all(number is not None for number in verdict.numbers.values())

    def test_an_optimum_on_the_edge_decides_nothing(self, kind, name, rows):
        predicted, measured = rows[kind]
        edged = Rows(
            {**row, "edge": "high"} if row["quantity"] == "log10_rate" else row
            for row in measured
        )
        verdict = claim(kind, name).check(predicted, edged)
        assert verdict.outcome == "UNDECIDED"
        assert "last one tried" in verdict.because

    def test_few_seeds_decide_nothing(self, kind, name, rows):
        predicted, measured = rows[kind]
        few = measured.where(lambda row: row.get("trial", 0) < 5)
        verdict = claim(kind, name).check(predicted, few)
        assert verdict.outcome == "UNDECIDED"
        assert "too few" in verdict.because

    def test_few_depths_decide_nothing(self, kind, name, rows):
        predicted, measured = rows[kind]
        some = measured.levels("depth")[-2:]
        few = measured.where(lambda row: row.get("depth") in [*some, None])
        assert claim(kind, name).check(predicted, few).outcome == "UNDECIDED"


def altered(measured, quantity, change, column="value", **labels):
    """Return the rows with a quantity changed, as if nature were otherwise."""
    found = [
        {**row, column: change(row)}
        if row["quantity"] == quantity
        and all(row.get(key) == value for key, value in labels.items())
        else row
        for row in measured
    ]
    assert Rows(found) != measured, f"no row of {quantity} was changed"
    return Rows(found)


def times(factor):
    return lambda row: row["value"] * factor


def const(value):
    """A constant with a hair of spread, as no measurement is without."""
    return lambda row: value * (1 + 1e-3 * row.get("trial", 0))


def power(scale, exponent):
    return lambda row: const(scale * row["depth"] ** exponent)(row)


def moved(decades):
    return lambda row: row["own_rate"] + decades


TWO, XAVIER, ORTHOGONAL, ONE, THREE = (
    {"network": name}
    for name in (
        "two_shortcut", "xavier", "orthogonal", "one_shortcut", "three_shortcut"
    )
)  # fmt: skip
EXCESS, LOSS, RATE = (
    ("excess", "value"),
    ("final_loss", "value"),
    ("log10_rate", "value"),
)
MEAN, MEAN_RELU = ("mean_excess", "value"), ("mean_final_loss", "value")
OWN, OWN_RELU = ("excess", "own_rate"), ("final_loss", "own_rate")
# Study, claim, outcome, and what is changed in turn: a world where the verdict is that.
WORLDS = [
    ("linear", "two-shortcut-near-optimal", "FAILS",
     [(EXCESS, {**TWO, "depth": 96}, const(0.02))]),
    ("linear", "two-shortcut-near-optimal", "FAILS", [(EXCESS, XAVIER, const(1e-5))]),
    ("linear", "two-shortcut-loss-invariant", "HOLDS", [(EXCESS, TWO, const(1e-6))]),
    ("linear", "two-shortcut-loss-invariant", "HOLDS",
     [(EXCESS, TWO, power(1e-6, 0.3))]),
    ("linear", "two-shortcut-loss-invariant", "UNDECIDED",
     [(EXCESS, TWO, lambda row: const(1e-6)(row) * 10 ** (row["trial"] % 2 * 2
       if row["depth"] == 96 else 0))]),
    ("linear", "two-shortcut-lowest", "HOLDS",
     [(EXCESS, {**TWO, "depth": 4}, const(1e-6))]),
    ("linear", "two-shortcut-lowest", "FAILS",
     [(EXCESS, {**THREE, "depth": 48}, const(1e-9))]),
    ("linear", "orthogonal-worsens", "HOLDS", [(EXCESS, ORTHOGONAL, power(1e-5, 1))]),
    ("linear", "orthogonal-worsens", "FAILS", [(EXCESS, ORTHOGONAL, power(1e-2, -1))]),
    ("linear", "orthogonal-worsens", "FAILS",
     [(EXCESS, ONE, power(1e-3, -1))]),
    ("linear", "xavier-fails", "FAILS", [(EXCESS, XAVIER, const(1e-4))]),
    ("linear", "xavier-fails", "FAILS",
     [(EXCESS, {**XAVIER, "depth": 96}, const(0.05))]),
    ("linear", "xavier-any-rate", "FAILS",
     [(MEAN, {**XAVIER, "depth": 96}, lambda row: 10.0 ** row["rate"])]),
    ("linear", "xavier-any-rate", "FAILS",
     [(MEAN, {**XAVIER, "depth": 4}, lambda row: 0.1)]),
    ("linear", "two-shortcut-higher-rates", "FAILS",
     [(OWN, {**XAVIER, "depth": 24}, moved(4))]),
    # Seeds and the mean over them contradict each other.
    ("linear", "two-shortcut-higher-rates", "UNDECIDED",
     [(RATE, {**ORTHOGONAL, "depth": 12}, lambda row: row["value"] + 4)]),
    ("linear", "two-shortcut-higher-rates", "UNDECIDED",
     [(OWN, {**THREE, "depth": 12},
       lambda row: row["own_rate"] + row["trial"] % 2 * 1.9)]),
    # Below, but by no more than chance.
    ("linear", "two-shortcut-higher-rates", "UNDECIDED",
     [(OWN, {**THREE, "depth": 12},
       lambda row: row["own_rate"] + (8.0 if row["trial"] % 2 else 0.0))]),
    ("linear", "two-shortcut-higher-rates", "UNDECIDED",
     [(MEAN, XAVIER, lambda row: 0.1)]),
    ("linear", "two-shortcut-rate-stays", "FAILS",
     [(OWN, TWO, lambda row: -np.log10(row["depth"]))]),
    ("linear", "two-shortcut-rate-stays", "FAILS",
     [(OWN, ORTHOGONAL, lambda row: -1.0)]),
    ("linear", "two-shortcut-rate-stays", "UNDECIDED",
     [(OWN, TWO, lambda row: -row["trial"] / 9 * np.log10(row["depth"]))]),
    ("linear", "one-shortcut-like-orthogonal", "HOLDS",
     [(EXCESS, {**ONE, "depth": 4}, const(2e-5)),
      (EXCESS, {**ONE, "depth": 6}, const(2e-4))]),
    ("linear", "one-shortcut-like-orthogonal", "FAILS",
     [(EXCESS, {**ONE, "depth": 96}, times(0.01))]),
    ("linear", "one-shortcut-like-orthogonal", "FAILS",
     [(OWN, {**ONE, "depth": 96}, moved(1))]),
    ("linear", "three-shortcut-stuck", "HOLDS", [(MEAN, THREE, lambda row: 4.6)]),
    ("relu", "deeper-relu-is-better", "FAILS", [(LOSS, TWO, power(0.1, 0.2))]),
    ("relu", "deeper-relu-is-better", "FAILS",
     [(LOSS, {**TWO, "depth": 32}, times(2))]),
    ("relu", "relu-beats-linear", "FAILS", [(LOSS, TWO, const(0.4))]),
    ("relu", "plain-relu-fails", "FAILS", [(LOSS, ORTHOGONAL, power(1, -0.2))]),
    ("relu", "plain-relu-fails", "FAILS", [(LOSS, {**TWO, "depth": 64}, const(0.6))]),
    ("relu", "two-shortcut-lowest-relu", "HOLDS", [(LOSS, TWO, const(0.01))]),
    ("relu", "two-shortcut-lowest-relu", "UNDECIDED",
     [(LOSS, TWO, const(0.01)),
      (LOSS, {**XAVIER, "depth": 16},
       lambda row: const(0.0105)(row) * 10 ** (row["trial"] % 2 - 0.5))]),
    ("relu", "plain-relu-any-rate", "FAILS",
     [(MEAN_RELU, {**XAVIER, "depth": 64}, lambda row: 10.0 ** row["rate"])]),
    ("relu", "plain-relu-any-rate", "FAILS",
     [(MEAN_RELU, {**XAVIER, "depth": 2}, lambda row: 0.4)]),
    ("relu", "two-shortcut-higher-rates-relu", "HOLDS",
     [(OWN_RELU, {**TWO, "depth": 8}, moved(1)),
      (RATE, {**TWO, "depth": 8}, lambda row: row["value"] + 1)]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name", "outcome", "changes"),
    WORLDS,
    ids=[f"{w[1]}-{i}" for i, w in enumerate(WORLDS)],
)
def test_each_verdict_turns_in_another_world(kind, name, outcome, changes, rows):
    predicted, measured = rows[kind]
    before = claim(kind, name).check(predicted, measured)
    for (quantity, column), labels, change in changes:
        measured = altered(measured, quantity, change, column, **labels)
    after = claim(kind, name).check(predicted, measured)
    assert after.outcome == outcome != before.outcome, after
    assert after.because != before.because


def test_every_claim_has_a_world():
    judged = {c.name for module in STUDIES.values() for c in module.STUDY.claims}
    assert {world[1] for world in WORLDS} == judged


def test_a_failed_order_says_where_and_from_which_depth_it_holds(rows):
    why = claim("relu", "two-shortcut-lowest-relu").check(*rows["relu"]).because
    assert "Xavier at depth 4" in why
    assert "met from depth 8 up" in why


def test_a_flat_optimum_on_the_edge_is_no_obstacle(rows):
    predicted, measured = rows["relu"]
    edge = measured.only(quantity="log10_rate", depth=64, **ORTHOGONAL)["edge"]
    assert edge == "high"
    check = claim("relu", "plain-relu-fails").check
    assert check(predicted, measured).outcome == "HOLDS"
    steep = altered(
        measured, "mean_final_loss", lambda row: 10.0 ** row["rate"], depth=64,
        **ORTHOGONAL,
    )  # fmt: skip
    assert (
        "last one tried for orthogonal at depth 64" in check(predicted, steep).because
    )


def test_a_run_lost_at_the_rate_of_the_claim_decides_nothing(rows):
    predicted, measured = rows["linear"]
    lost = altered(
        measured, "mean_excess", lambda row: int(abs(row["rate"] + 1) < 1e-9),
        column="diverged", depth=24, network="two_shortcut",
    )  # fmt: skip
    verdict = claim("linear", "three-shortcut-stuck").check(predicted, lost)
    assert verdict.outcome == "UNDECIDED"
    assert "at depth 24 some run at a rate of 0.1 diverged" in verdict.because


def test_rates_are_not_compared_where_all_end_alike(rows):
    numbers = (
        claim("relu", "two-shortcut-higher-rates-relu").check(*rows["relu"]).numbers
    )
    compared = [name for name in numbers if name.startswith("decades above orthogonal")]
    assert [int(name.split()[-1]) for name in compared] == [8, 16, 24, 32]


@pytest.mark.parametrize("name", ["two-shortcut-loss-invariant", "orthogonal-worsens"])
def test_two_deep_depths_fix_no_trend(name, rows):
    predicted, measured = rows["linear"]
    few = measured.where(lambda row: row.get("depth") in (None, 4, 6, 12, 18))
    verdict = claim("linear", name).check(predicted, few)
    assert not any("from depth 8 up" in number for number in verdict.numbers)
    if name == "orthogonal-worsens":
        assert verdict.outcome == "UNDECIDED"


def test_networks_beside_enter_no_claim(rows):
    predicted, measured = rows["relu"]
    paper = measured.where(lambda row: row.get("network") not in BESIDE)
    low = [
        {
            **row,
            "network": name,
            "value": 1e-6 if row["quantity"] == "final_loss" else 5,
        }
        for row in measured.where(depth=48, **TWO)
        for name in BESIDE
    ]
    for one in final_losses_relu.STUDY.claims:
        assert one.check(predicted, paper + low) == one.check(predicted, paper)


def test_committed_rows_are_judged_first_and_named(rows):
    predicted, measured = rows["relu"]
    own = Rows({**row, "source": "trained"} for row in measured)
    check = claim("relu", "deeper-relu-is-better").check
    assert check(predicted, own).rests_on == ""
    rising = altered(measured, "final_loss", power(0.1, 0.2), **TWO)
    verdict = check(predicted, own + rising)
    assert verdict.outcome == "FAILS"
    assert verdict.rests_on == "committed"
    assert "by the committed run, up to 10 networks a point" in verdict.because


def test_committed_rows_have_their_own_optimum(rows):
    predicted, measured = rows["linear"]
    data = measured.value(quantity="optimal_loss")
    assert data != predicted.value(quantity="optimal_loss")
    label = final_losses_linear.STUDY.compare(predicted, measured)[0]
    assert label["predicted"] == data


@pytest.mark.parametrize("kind", STUDIES)
def test_committed_rows_have_a_cell_of_their_own(kind):
    study, run = STUDIES[kind].STUDY, STUDIES[kind].RUN
    quick, paper = (study.presets[scale] for scale in ("quick", "paper"))
    assert study.cells(quick)[-1] == {"source": "committed"}
    assert study.measure(quick, {"source": "committed"}) == run.rows()
    assert {"source": "committed"} not in study.cells(paper)


@pytest.mark.parametrize("kind", STUDIES)
def test_rows_carry_their_error(kind, rows):
    for row in rows[kind][1]:
        assert row.get("error") is not None, row


@pytest.mark.parametrize("kind", STUDIES)
def test_drawings_come_from_rows(kind, rows):
    study = STUDIES[kind].STUDY
    own = Rows({**row, "source": "trained"} for row in rows[kind][1])
    for drawing in study.drawings:
        names = legend(drawing, rows[kind][0], own)
        assert "2-shortcut" in names
        paper = [
            n for n in own.levels("network") if kind == "linear" or n not in BESIDE
        ]
        assert len({n for n in names if "not in" not in n}) == len(paper)


def legend(drawing, predicted, own):
    with figures.house_style():
        figure = drawing.draw(predicted, own)
    assert all(panel.get_xlabel() for panel in figure.axes)
    names = [text.get_text() for text in figure.axes[-1].get_legend().get_texts()]
    assert len(names) == len(set(names))
    return names


def test_networks_beside_are_marked(rows):
    predicted, measured = rows["relu"]
    paper = measured.where(lambda row: row.get("network") not in BESIDE)
    beside = [{**row, "network": name} for row in paper.where(**TWO) for name in BESIDE]
    drawing = final_losses_relu.STUDY.drawings[0]
    names = legend(drawing, predicted, paper + beside)
    assert sum("not in the paper" in name for name in names) == len(BESIDE) == 2
    with figures.house_style():
        lines = drawing.draw(predicted, paper + beside).axes[1].get_lines()
    assert sum(line.get_linestyle() == "--" for line in lines) == 2
    by_rate = final_losses_relu.STUDY.drawings[2]
    assert legend(by_rate, predicted, paper + beside) == legend(
        by_rate, predicted, paper
    )
