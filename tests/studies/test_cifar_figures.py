"""Figures 2 and 9: what is trained, what is committed, and that verdicts can turn."""

import numpy as np
import pytest

from theodolite import figures
from theodolite.core import ConfigError, Rows
from theodolite.studies.li2016demystifying import (
    cifar_training,
    shortcut_depth_cifar,
    weight_norms_cifar,
)

SHORTCUTS, DEPTHS, TRIALS, EPOCHS = (1, 2, 3, 4), (38, 110), range(4), 2
STUDIES = (shortcut_depth_cifar.STUDY, weight_norms_cifar.STUDY)


def world(error=None, norm=None, depths=DEPTHS, source="trained", status="finished"):
    """Rows as a training would leave them, with errors and norms of our choice."""
    error = error or (lambda n, depth, trial: 0.2)
    norm = norm or (lambda depth, epoch, trial: 5.0)
    found = []
    for n in SHORTCUTS:
        for depth in depths:
            for trial in TRIALS:
                labels = {
                    "source": source, "shortcut": n, "depth": depth, "trial": trial,
                    "status": status, "epochs": EPOCHS,
                }  # fmt: skip
                found.append({"quantity": "parameters", "value": 7, **labels})
                for epoch in range(EPOCHS + 1):
                    at = {"epoch": epoch, **labels}
                    value = error(n, depth, trial)
                    found += [
                        {"quantity": "test_error", "value": value, "error": 0.01, **at},
                        {"quantity": "norm", "value": norm(depth, epoch, trial), **at},
                    ]
    return Rows(found)


def jitter(trial):
    return 0.001 * np.cos(7 * trial)


def paper_s_world(n, depth, trial):
    """Only shortcut 2 gains from depth."""
    sign = -1 if n == 2 else 1
    return 0.2 + sign * 0.02 * np.log(depth / 38) + jitter(trial + n * depth)


def verdict(study, name, measured, predicted=None):
    (claim,) = [c for c in study.claims if c.name == name]
    return str(claim.check(Rows(predicted or []), measured).outcome)


GAINS, OTHERS, BEST, VERY_DEEP = (
    "two-shortcut-gains-from-depth",
    "other-shortcuts-degrade",
    "two-shortcut-best-when-deep",
    "only-two-gains-beyond-400",
)


def flipped(n, depth, trial):
    return 0.4 - paper_s_world(n, depth, trial)


def noise(n, depth, trial):
    return 0.2 + 0.02 * np.cos(5 * trial + 3 * n + depth)


@pytest.mark.parametrize("claim", [GAINS, OTHERS, BEST])
@pytest.mark.parametrize(
    ("error", "wanted"),
    [(paper_s_world, "HOLDS"), (flipped, "FAILS"), (noise, "UNDECIDED")],
)
def test_each_verdict_on_errors_can_turn(claim, error, wanted):
    assert verdict(shortcut_depth_cifar.STUDY, claim, world(error)) == wanted


def test_one_of_the_others_that_gains_refutes():
    def three_gains(n, depth, trial):
        return flipped(n, depth, trial) if n == 3 else paper_s_world(n, depth, trial)

    assert verdict(shortcut_depth_cifar.STUDY, OTHERS, world(three_gains)) == "FAILS"


@pytest.mark.parametrize(
    ("depths", "error", "wanted"),
    [
        ((38, 110), paper_s_world, "UNDECIDED"),
        ((38, 110, 434), paper_s_world, "HOLDS"),
        ((38, 110, 434), flipped, "FAILS"),
        ((38, 110, 434), noise, "UNDECIDED"),
    ],
)
def test_depth_beyond_400_is_judged_only_where_it_was_trained(depths, error, wanted):
    rows = world(error, depths=depths)
    assert verdict(shortcut_depth_cifar.STUDY, VERY_DEEP, rows) == wanted


def test_a_short_very_deep_run_decides_nothing():
    deep = world(paper_s_world, depths=(434,)).where(trial=0)
    short = [{**row, "epochs": 1} for row in deep]
    rows = world(paper_s_world) + short
    assert verdict(shortcut_depth_cifar.STUDY, VERY_DEEP, rows) == "UNDECIDED"
    assert verdict(shortcut_depth_cifar.STUDY, GAINS, rows) == "HOLDS"


def test_networks_outside_the_paper_scale_are_owned_up_to():
    rows = cifar_training.RUN.rows().where(quantity="parameters")
    extra = set(rows.levels("depth")) - set(shortcut_depth_cifar.PAPER.depths)
    text = " ".join(shortcut_depth_cifar.STUDY.departures)
    assert extra
    assert all(f"depth {depth}" in text for depth in extra)


def test_two_seeds_are_too_few():
    rows = world(paper_s_world).where(lambda row: row["trial"] < 2)
    assert verdict(shortcut_depth_cifar.STUDY, GAINS, rows) == "UNDECIDED"


def test_a_diverged_network_counts_as_chance_and_a_stopped_one_not_at_all():
    good = world(paper_s_world).where(lambda r: (r["shortcut"], r["depth"]) != (2, 110))
    bad = world(paper_s_world, depths=(110,)).where(shortcut=2)
    diverged = good + [{**row, "status": "diverged"} for row in bad]
    stopped = good + [{**row, "status": "stopped"} for row in bad]
    assert verdict(shortcut_depth_cifar.STUDY, GAINS, diverged) == "FAILS"
    assert verdict(shortcut_depth_cifar.STUDY, GAINS, stopped) == "UNDECIDED"


def test_committed_rows_are_judged_before_those_of_the_run():
    rows = world(paper_s_world, source="committed") + world(flipped)
    assert verdict(shortcut_depth_cifar.STUDY, GAINS, rows) == "HOLDS"
    assert verdict(shortcut_depth_cifar.STUDY, GAINS, world(flipped)) == "FAILS"


@pytest.mark.parametrize(("counted", "wanted"), [(7, "HOLDS"), (8, "FAILS")])
def test_parameters_must_be_those_of_the_formula(counted, wanted):
    predicted = [{"quantity": "parameters", "source": "trained", "depth": d, "value": 7}
                 for d in DEPTHS]  # fmt: skip
    rows = Rows(
        {**r, "value": counted}
        if r["quantity"] == "parameters" and r["shortcut"] == 3 and r["trial"] == 1
        else r
        for r in world()
    )
    name = "shortcut-depths-equal-parameters"
    assert verdict(shortcut_depth_cifar.STUDY, name, rows, predicted) == wanted


END, THROUGH, ZERO, START = (
    "deeper-smaller-at-the-end",
    "deeper-smaller-throughout",
    "training-ends-around-zero",
    "norms-start-equal",
)


def falls(depth, epoch, trial):
    return 5 * np.exp(-0.05 * epoch * np.log(depth)) * (1 + jitter(trial + depth))


def grows(depth, epoch, trial):
    return 25 / falls(depth, epoch, trial)


def crosses(depth, epoch, trial):
    return (falls if epoch == EPOCHS else grows)(depth, epoch, trial)


def wavers(depth, epoch, trial):
    return 5 + np.cos(5 * trial + depth + epoch)


@pytest.mark.parametrize(
    ("claim", "norm", "wanted"),
    [
        (END, falls, "HOLDS"),
        (END, grows, "FAILS"),
        (END, crosses, "HOLDS"),
        (END, wavers, "UNDECIDED"),
        (THROUGH, falls, "HOLDS"),
        (THROUGH, crosses, "FAILS"),
        (THROUGH, wavers, "UNDECIDED"),
        (ZERO, falls, "HOLDS"),
        (ZERO, grows, "FAILS"),
        (ZERO, wavers, "UNDECIDED"),
    ],
)
def test_each_verdict_on_norms_can_turn(claim, norm, wanted):
    assert verdict(weight_norms_cifar.STUDY, claim, world(norm=norm)) == wanted


@pytest.mark.parametrize(
    ("spread", "wanted"), [(0.0035, "FAILS"), (0.0048, "UNDECIDED")]
)
def test_growth_at_one_epoch_of_several_takes_a_share_of_the_level(spread, wanted):
    """Student's t is 4.9 and 3.6; it takes 3.2 for one epoch and 4.2 for one of two."""

    def norm(depth, epoch, trial):
        grown = (0.01 + spread * (-1) ** trial) * np.log(depth)
        return 5 * np.exp(grown) if epoch == 1 else falls(depth, epoch, trial)

    assert verdict(weight_norms_cifar.STUDY, THROUGH, world(norm=norm)) == wanted


@pytest.mark.parametrize(("offset", "wanted"), [(0.0, "HOLDS"), (1.0, "FAILS")])
def test_norms_at_the_start_are_compared_with_theory(offset, wanted):
    predicted = [{"quantity": "norm", "source": "trained", "depth": d, "epoch": 0,
                  "value": 5.0 + offset, "error": 0.1} for d in DEPTHS]  # fmt: skip
    assert verdict(weight_norms_cifar.STUDY, START, world(), predicted) == wanted


@pytest.mark.parametrize("study", STUDIES)
def test_what_is_committed_can_be_run_again(study):
    rows = cifar_training.RUN.rows()
    config = study.presets["paper"]
    cells = study.cells(config)
    for row in rows.where(quantity="seconds", epochs=config.epochs):
        cell = {key: row[key] for key in ("shortcut", "depth", "trial")}
        wanted = {"source": "trained", **cell}
        assert row["depth"] > 400 or row["shortcut"] not in config.shortcuts or (
            wanted in cells
        )  # fmt: skip
    quick = study.presets["quick"]
    assert ({"source": "committed"} in study.cells(quick)) == (len(rows) > 0)


@pytest.fixture(scope="module")
def trained():
    """One SMOKE cell of figure 9 by itself, and beside another."""
    config = shortcut_depth_cifar.SMOKE
    cells = [c for c in shortcut_depth_cifar.STUDY.cells(config)
             if c.get("depth") == 14 and c["shortcut"] in (1, 4)]  # fmt: skip
    alone = shortcut_depth_cifar.STUDY.measure(config, cells[0])
    together = cifar_training.train_cells(config, cells, at_once=2)
    return config, cells, alone, together


def test_a_cell_is_the_same_alone_and_beside_others(trained):
    _, _, alone, together = trained
    kept = [row for row in together[0] if row["quantity"] != "seconds"]
    assert alone.where(lambda row: row["quantity"] != "seconds") == Rows(kept)
    assert alone.only(quantity="seconds")["status"] == "finished"


def test_training_starts_where_theory_says_and_moves(trained):
    config, _, alone, together = trained
    plan = {"quantity": "norm", "depth": 14, "source": "trained"}
    wanted = weight_norms_cifar.predict(config).only(**plan)
    norms = alone.where(quantity="norm").values()
    assert abs(norms[0] - wanted["value"]) < 4 * wanted["error"]
    assert norms[1] != norms[0]
    both = [Rows(rows).where(quantity="norm").values() for rows in together]
    assert both[0][0] == both[1][0]  # the same weights at the start
    assert both[0][1] != both[1][1]
    counts = [Rows(rows).value(quantity="parameters") for rows in together]
    formula = shortcut_depth_cifar.predict(config).value(
        quantity="parameters", depth=14, source="trained"
    )
    assert counts == [formula, formula]


@pytest.mark.parametrize("study", STUDIES)
def test_a_panel_for_each_set_of_rows(study):
    here = world(paper_s_world, falls)
    both = here + world(paper_s_world, falls, source="committed")
    (drawing,) = study.drawings
    assert len(drawing.draw(Rows(), here).axes) == 1
    with figures.house_style():
        figure = drawing.draw(Rows(), both)
    assert [str(a.get_title(loc="left")) for a in figure.axes] == [
        "CIFAR-10 (committed run)",
        "this run",
    ]
    assert all(axes.lines for axes in figure.axes)


def test_depths_that_cut_units_are_refused():
    with pytest.raises(ConfigError, match="such as 38"):
        shortcut_depth_cifar.Config(depths=(44,))
