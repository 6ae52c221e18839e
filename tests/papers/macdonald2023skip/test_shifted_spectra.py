"""Figures 1 and 2: counterfactuals on which each verdict turns, and what is refused."""

import numpy as np
import pytest
import torch

from tests.studies.counterfactuals import (
    check_reproduced,
    claim_of,
    const,
    each_case,
    refused,
    rows_of,
    said,
    scale,
    shift,
    study_tests,
    with_change,
)
from theodolite.core import PredictedAndMeasured, Rows, TwoBlockBlueprint
from theodolite.networks import AverageSkip, build
from theodolite.studies import find
from theodolite_papers.macdonald2023skip.shared.spectra import few_images
from theodolite_papers.macdonald2023skip.shifted_spectra.config import Config, cells
from theodolite_papers.macdonald2023skip.shifted_spectra.measure import singular_values

STUDY = "shifted_spectra"
ORDER = ("chain", "res", "average")


def by_kind(step):
    """Values that rise or fall from network to network, a little apart by trial."""
    return lambda row: 50 + step * ORDER.index(row["kind"]) * (1 + row["trial"] / 1000)


def after_start(step):
    """The same of losses, which are equal before the first step."""
    return lambda row: by_kind(step)(row) if row["step"] else 50 + row["trial"] / 1000


def hypothesis(step):
    """Spectra and losses as the hypothesis has them, or the other way round."""
    return lambda row: by_kind(step if row["quantity"] == "share" else -step)(row)


def with_gain(factor):
    """Losses of Res that rise, or fall, with the weights; 0 at the default."""
    powers = {0.25: -2, 1.0: 0, 4.0: 2}
    return lambda row: (
        factor * powers[row["gain"]] * (1 + row["trial"] / 1000)
        if row["kind"] == "res"
        else 0.001 * row["trial"]
    )


def narrowed(factor):
    """Shares of Res that narrow at small weights and rise at large ones, or not."""

    def value(row):
        if row["kind"] != "res":
            return 50
        away = -1 if row["gain"] < 1 and row["share"] == 10 else 1
        return 50 + factor * away * (1 + row["trial"] / 1000)

    return value


FIGURE, SCRIPT, START = ({"part": part} for part in ("figure", "script", "start"))
SCORES, BLOCKS, DF = (
    {**FIGURE, "metric": m} for m in ("composite", "blocks", "parameters")
)
SPECTRUM = ("share", "mean")
HELD, FAILED = ("HOLDS", None), ("FAILS", None)
# Claim, side, quantity, labels, change, and what is said then.
COUNTERFACTUALS = [
    ("linear-shift", "m", "matrix_share", {"shift": 1.0}, shift(-5.0), FAILED),
    ("linear-law", "m", "matrix_share", {}, shift(0.1), FAILED),
    ("linear-law", "p", "matrix_share", {"shift": 0.0}, shift(0.1), FAILED),
    ("rise-at-every-variance", "p", "rise", {}, scale(-1.0), FAILED),
    ("rise-at-every-variance", "p", "rise", {}, lambda row: row["gain"], FAILED),
    ("lemma-is-silent", "m", "high_end", {"shift": 0.0}, scale(0.5), FAILED),
    ("lemma-is-silent", "m", "low_end", {"shift": 1.0}, scale(0.01), FAILED),
    ("average-pool-is-no-isometry", "m", "skip_ones", {"map": "average"}, const(320),
     ("HOLDS", "FAILS")),
    ("average-pool-is-no-isometry", "m", "skip_ones", {"map": "haar"}, const(80),
     ("FAILS", "FAILS")),
    ("average-pool-is-no-isometry", "m", "pool_most", {"stride": 3}, const(0.5),
     ("FAILS", "FAILS")),
    ("average-pool-is-no-isometry", "m", "overlapping_least", {}, const(0.6),
     ("FAILS", "FAILS")),
    ("skips-shift-scores", "m", SPECTRUM, SCORES, by_kind(10), HELD),
    ("skips-shift-scores", "m", SPECTRUM, SCORES, by_kind(-10), FAILED),
    ("average-shifts-scores", "m", SPECTRUM, SCORES, by_kind(10), HELD),
    ("average-shifts-scores", "m", SPECTRUM, SCORES, by_kind(-10), FAILED),
    ("skips-shift-blocks", "m", SPECTRUM, BLOCKS, by_kind(10), HELD),
    ("skips-shift-blocks", "m", SPECTRUM, BLOCKS, by_kind(-10), FAILED),
    ("average-shifts-blocks", "m", SPECTRUM, BLOCKS, by_kind(10), HELD),
    ("average-shifts-blocks", "m", SPECTRUM, BLOCKS, by_kind(-10), FAILED),
    ("skips-shift-parameters", "m", SPECTRUM, DF, by_kind(10), HELD),
    ("skips-shift-parameters", "m", SPECTRUM, DF, by_kind(-10), FAILED),
    ("average-shifts-parameters", "m", SPECTRUM, DF, by_kind(10), HELD),
    ("average-shifts-parameters", "m", SPECTRUM, DF, by_kind(-10), FAILED),
    ("additions-raise-the-ratio", "m", "ratio", FIGURE, by_kind(10), HELD),
    ("additions-raise-the-ratio", "m", "ratio", FIGURE, by_kind(-10), FAILED),
    ("skips-train-faster", "m", "loss", FIGURE, after_start(-1), HELD),
    ("skips-train-faster", "m", "loss", FIGURE, after_start(1), FAILED),
    ("average-trains-faster", "m", "loss", FIGURE, after_start(-1), HELD),
    ("average-trains-faster", "m", "loss", FIGURE, after_start(1), FAILED),
    ("skips-faster-initially", "m", "loss", FIGURE, after_start(-1), HELD),
    ("skips-faster-initially", "m", "loss", FIGURE, after_start(1), FAILED),
    ("average-faster-initially", "m", "loss", FIGURE, after_start(-1), HELD),
    ("average-faster-initially", "m", "loss", FIGURE, after_start(1), FAILED),
    ("script-shifts-scores", "m", "share", SCRIPT, by_kind(10), HELD),
    ("script-shifts-scores", "m", "share", SCRIPT, by_kind(-10), FAILED),
    ("some-initialisation", "m", ("share", "log_loss"), START, hypothesis(10), HELD),
    ("some-initialisation", "m", ("share", "log_loss"), START, hypothesis(-10), FAILED),
    ("scores-see-less", "m", "mean", START, by_kind(-10), HELD),
    ("scores-see-less", "m", "mean", START, by_kind(10), FAILED),
    ("small-weights-want-skips", "m", "log_loss", START, with_gain(1), HELD),
    ("small-weights-want-skips", "m", "log_loss", START, with_gain(-1), FAILED),
    ("small-weights-narrow-spectra", "m", "share", START, narrowed(10), HELD),
    ("small-weights-narrow-spectra", "m", "share", START, narrowed(-10), FAILED),
]  # fmt: skip


class TestStudy(
    study_tests(
        STUDY,
        COUNTERFACTUALS,
        check=None,
        alone=("skips-shift-blocks", "skips-train-faster", "some-initialisation"),
    )
):
    def test_verdicts_at_smoke(self, smoke_root):
        """Of claims that need no network; two networks decide little of the others."""
        study, both = rows_of(smoke_root, STUDY)
        for name in ("linear-shift", "linear-law", "rise-at-every-variance",
                     "lemma-is-silent"):  # fmt: skip
            assert said(claim_of(study, name).rule(both)) == HELD
        assert claim_of(study, "average-pool-is-no-isometry").rule(both).confirmed

    @each_case(COUNTERFACTUALS)
    def test_each_verdict_turns_on_a_counterfactual(self, case, smoke_root):
        claim, side, quantity, labels, change, wanted = case
        study, both = rows_of(smoke_root, STUDY)
        there = with_change(both, side, quantity, change, **labels)
        assert said(claim_of(study, claim).rule(there)) == wanted


test_what_cannot_be_run_is_refused = refused(
    STUDY,
    ({"block_samples": 40}, "block_samples is 40: pass a number from 1 to"),
    ({"spectra_at": (31,)}, "training of 30 and 30 steps with spectra at"),
    ({"steps": 9}, "both want at least 10 steps"),
)


def test_one_share_that_falls_is_a_shift_of_the_mean_alone(smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    claim = claim_of(study, "skips-shift-blocks")
    risen = with_change(both, "m", SPECTRUM, by_kind(10), **BLOCKS)
    fallen = with_change(risen, "m", "share", by_kind(-10), **BLOCKS, share=10)
    ruling = claim.rule(fallen)
    assert said(ruling) == ("UNDECIDED", None)
    assert ruling.judged.because.startswith('depends on the reading: FAILS under "ever')


def test_the_skip_of_the_paper_by_hand():
    """One channel of one block of pixels: a mean times three is a unit vector."""
    values = singular_values(AverageSkip(1, 2, stride=3), 1, 3)
    assert values == pytest.approx([0.0, 1.0])


def test_trials_of_a_scale_are_cells_of_their_own():
    config = Config(n_seeds=2, script_at=(), starts=(("he", 1.0),), start_trials=1)
    found = cells(config)
    parts = [cell["part"] for cell in found]
    assert {part: parts.count(part) for part in parts} == {
        "figure": 6, "start": 3, "matrix": 5, "pools": 1
    }  # fmt: skip
    assert len({str(cell) for cell in found}) == len(found)


def test_a_cell_of_the_committed_run_is_reproduced():
    check_reproduced(STUDY, {"part": "matrix", "trial": 103})


def test_the_committed_run_has_twenty_trials_of_each_network():
    run = find(STUDY).study.committed.run
    for kind in ORDER:
        rows = run.rows().where(part="figure", kind=kind, quantity="share")
        assert len(rows.levels("trial")) == 20
        whole = rows.where(metric="parameters")
        assert (len(whole.levels("trial")), len(whole)) == (10, 10 * 8 * 10)
        assert len(rows) - len(whole) == 20 * 2 * 10


def test_one_part_of_the_training_turns_what_is_said_of_all(smoke_root):
    """Spectra by the parameters that rise at first, and fall later on."""
    study, both = rows_of(smoke_root, STUDY)
    risen = with_change(both, "m", SPECTRUM, by_kind(10), **DF)
    late = [{**r, "step": 15, "value": by_kind(-20)(r)}
            for r in risen.measured.where(quantity="share", **DF)
            if r["step"] == 0]  # fmt: skip
    there = PredictedAndMeasured(both.predicted, risen.measured + late)
    ruling = claim_of(study, "skips-shift-parameters").rule(there)
    assert said(ruling) == ("UNDECIDED", None)
    assert 'but FAILS under "20 steps' in ruling.judged.because


def test_rows_that_are_missing_decide_nothing(smoke_root):
    study, both = rows_of(smoke_root, STUDY)
    nothing = PredictedAndMeasured(both.predicted, Rows())
    for claim in study.claims:
        wanted = "HOLDS" if claim.name == "rise-at-every-variance" else "NOT RUN"
        assert claim.rule(nothing).outcome == wanted


def test_the_ratio_and_the_derivative_by_parameters_are_those_of_the_network(
    smoke_root,
):
    """Against a Jacobian and a gradient by torch, before the first step."""
    _, both = rows_of(smoke_root, STUDY)
    config = find(STUDY).study.presets["smoke"]
    network = build(TwoBlockBlueprint(), seed=0).double()
    drawn = few_images(config.dataset, config.samples, seed=0)
    x, y = torch.tensor(drawn.images), torch.tensor(drawn.labels)
    weights = list(network.parameters())
    scores = network(x)
    loss = torch.nn.functional.cross_entropy(scores, y)
    slopes = torch.autograd.grad(loss, weights, retain_graph=True)
    square = sum(float((slope**2).sum()) for slope in slopes)
    here = {"part": "figure", "kind": "res", "trial": 0}
    ratio = both.measured.only(quantity="ratio", step=0, **here)
    assert ratio["value"] == pytest.approx(square / loss.item(), rel=1e-4)
    rows = [
        torch.cat(
            [g.flatten() for g in torch.autograd.grad(s, weights, retain_graph=True)]
        )
        for s in scores.flatten()
    ]
    values = torch.linalg.svdvals(torch.stack(rows)).flip(0).numpy()
    shares = both.measured.where(quantity="share", metric="parameters", **here)
    wanted = [part.mean() for part in np.array_split(values, 10)]
    assert shares.values() == pytest.approx(wanted, rel=1e-3, abs=1e-3)
