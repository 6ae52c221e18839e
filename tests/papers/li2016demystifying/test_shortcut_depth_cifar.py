"""Figure 9: verdicts on made trainings, what is trained and what is committed."""

import numpy as np
import pytest

from tests.papers.li2016demystifying.cifar_counterfactuals import (
    jitter,
    made_rows,
    verdict,
)
from tests.studies.counterfactuals import (
    claim_of,
    refused,
    rows_of,
    study_tests,
)
from theodolite.core import PredictedAndMeasured, Rows
from theodolite_papers.li2016demystifying.shared.cifar_training import train_cells
from theodolite_papers.li2016demystifying.shortcut_depth_cifar import STUDY
from theodolite_papers.li2016demystifying.shortcut_depth_cifar.config import (
    LENGTHS,
)

NAME = "shortcut_depth_cifar"
DEEP, LONG, BELOW, BEST = (
    "only-two-gains-beyond-400",
    "longer-than-four-worse",
    "only-two-gains-below-400",
    "two-shortcut-best-when-deep",
)


def as_the_paper_says(n, depth, trial):
    """Only shortcut 2 gains from depth, and long ones are worse."""
    sign = -1 if n == 2 else 1
    longer = 0.1 if n > 4 else 0.0
    return 0.2 + longer + sign * 0.02 * np.log(depth / 30) + jitter(trial + n * depth)


def flipped(n, depth, trial):
    return 0.6 - as_the_paper_says(n, depth, trial)


def noise(n, depth, trial):
    return 0.2 + 0.02 * np.cos(5 * trial + 3 * n + depth)


@pytest.mark.parametrize("claim", [BELOW, BEST])
@pytest.mark.parametrize(
    ("error", "wanted"),
    [(as_the_paper_says, "HOLDS"), (flipped, "FAILS"), (noise, "UNDECIDED")],
)
def test_each_verdict_on_errors_can_turn(claim, error, wanted):
    assert verdict(STUDY, claim, made_rows(error)) == wanted


@pytest.mark.parametrize(
    ("error", "wanted"),
    [(as_the_paper_says, "HOLDS"), (flipped, "FAILS"), (noise, "UNDECIDED")],
)
def test_longer_shortcuts_are_judged_where_they_were_trained(error, wanted):
    rows = made_rows(error, shortcuts=LENGTHS)
    assert verdict(STUDY, LONG, rows) == wanted
    short = rows.where(lambda row: row["shortcut"] <= 4)
    assert verdict(STUDY, LONG, short) == "NOT RUN"


def test_a_long_shortcut_that_beats_one_of_the_shown_refutes():
    def six_beats_three(n, depth, trial):
        return as_the_paper_says(n, depth, trial) - (0.2 if n == 6 else 0.0)

    assert (
        verdict(STUDY, LONG, made_rows(six_beats_three, shortcuts=LENGTHS)) == "FAILS"
    )


def test_no_depth_is_added_longer_shortcuts_are_worse_on_average():
    """The caption says worse, and not at every depth."""

    def better_at_first(n, depth, trial):
        return as_the_paper_says(n, depth, trial) - (
            0.15 if (n, depth) == (6, 38) else 0.0
        )

    rows = made_rows(better_at_first, shortcuts=LENGTHS)
    assert verdict(STUDY, LONG, rows) == "HOLDS"


def test_lengths_are_compared_at_the_depths_that_all_have():
    """A depth at which only long ones were trained would count for them alone."""

    def deep_is_bad(n, depth, trial):
        return as_the_paper_says(n, depth, trial) + (0.6 if depth > 100 else 0.0)

    rows = made_rows(
        lambda n, depth, trial: deep_is_bad(n, depth, trial) - (n > 4) * 0.2,
        shortcuts=LENGTHS,
    )
    alone = rows.where(lambda row: row["shortcut"] > 4 or row["depth"] < 100)
    assert verdict(STUDY, LONG, alone) == "FAILS"


def test_one_of_the_others_that_gains_refutes():
    def three_gains(n, depth, trial):
        return (
            flipped(n, depth, trial) if n == 3 else as_the_paper_says(n, depth, trial)
        )

    assert verdict(STUDY, BELOW, made_rows(three_gains)) == "FAILS"


@pytest.mark.parametrize(
    ("depths", "error", "wanted"),
    [
        ((38, 110), as_the_paper_says, "NOT RUN"),
        ((38, 110, 434), as_the_paper_says, "HOLDS"),
        ((38, 110, 434), flipped, "FAILS"),
        ((38, 110, 434), noise, "UNDECIDED"),
    ],
)
def test_depth_beyond_400_is_judged_only_where_it_was_trained(depths, error, wanted):
    assert verdict(STUDY, DEEP, made_rows(error, depths=depths)) == wanted


def test_a_short_very_deep_run_decides_nothing():
    deep = made_rows(as_the_paper_says, depths=(434,)).where(trial=0)
    rows = made_rows(as_the_paper_says) + [{**row, "epochs": 1} for row in deep]
    assert verdict(STUDY, DEEP, rows) == "NOT RUN"
    assert verdict(STUDY, BELOW, rows) == "HOLDS"


def test_networks_outside_the_paper_scale_are_owned_up_to():
    rows = STUDY.committed.run.rows().where(quantity="parameters")
    extra = set(rows.levels("depth")) - set(STUDY.presets["paper"].depths)
    text = " ".join(STUDY.departures)
    assert extra
    assert all(f"depth {depth}" in text for depth in extra)


def test_a_test_error_counts_with_the_error_of_its_images():
    """Differences that are within what the test images leave open decide nothing."""
    rows = made_rows(as_the_paper_says)
    blurred = Rows(
        {**r, "error": 0.02} if r["quantity"] == "test_error" else r for r in rows
    )
    assert verdict(STUDY, BELOW, rows) == "HOLDS"
    assert verdict(STUDY, BELOW, blurred) == "UNDECIDED"


def test_a_diverged_network_counts_as_chance_and_a_stopped_one_not_at_all():
    good = made_rows(as_the_paper_says).where(
        lambda r: (r["shortcut"], r["depth"]) != (2, 110)
    )
    bad = made_rows(as_the_paper_says, depths=(110,)).where(shortcut=2)
    diverged = good + [{**row, "status": "diverged"} for row in bad]
    stopped = good + [{**row, "status": "stopped"} for row in bad]
    assert verdict(STUDY, BELOW, diverged) == "FAILS"
    assert verdict(STUDY, BELOW, stopped) == "UNDECIDED"


OPEN = dict.fromkeys((LONG, BELOW, BEST), "UNDECIDED") | {DEEP: "NOT RUN"}
TestSmoke = study_tests(NAME, verdicts=OPEN)
test_what_cannot_be_run_is_refused = refused(NAME, ({"depths": (44,)}, "such as 38"))


def test_the_committed_run_leaves_all_open():
    committed = PredictedAndMeasured(Rows(), STUDY.committed.run.rows())
    for name, said in OPEN.items():
        assert claim_of(STUDY, name).rule(committed).outcome == said


def test_what_is_committed_can_be_run_again():
    config = STUDY.presets["paper"]
    cells = STUDY.cells(config)
    for row in STUDY.committed.run.rows().where(quantity="parameters"):
        cell = {key: row[key] for key in ("shortcut", "depth", "trial")}
        assert row["depth"] > 400 or cell in cells
        assert row["depth"] > 400 or len(STUDY.committed.run.of_cell(config, cell))


def test_shortcut_depths_have_equal_parameters(smoke_root):
    """Our builder, not the paper's claim: units of any length have the same."""
    _, both = rows_of(smoke_root, NAME)
    for row in both.predicted.where(quantity="parameters"):
        found = both.measured.where(quantity="parameters", depth=row["depth"])
        assert found.levels("shortcut") == sorted(LENGTHS)
        assert set(found.values()) == {row["value"]}


def test_a_cell_is_the_same_alone_and_beside_others():
    config = STUDY.presets["smoke"]
    cells = [c for c in STUDY.cells(config) if c["depth"] == 14 and c["trial"] == 0]
    both = [cells[0], cells[-1]]
    alone = STUDY.measure(config, both[0])
    together = train_cells(config, both, at_once=2)
    kept = [row for row in together[0] if row["quantity"] != "seconds"]
    assert alone == Rows(kept)
    norms = [Rows(rows).where(quantity="norm").values() for rows in together]
    assert norms[0][0] == norms[1][0]  # the same weights at the start
    assert norms[0][1] not in (norms[1][1], norms[0][0])
