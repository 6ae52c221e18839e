"""Table 1: verdicts on made trainings, which runs count, and what is trained."""

import math
from dataclasses import replace

import pytest

from tests.papers.macdonald2023skip.image_counterfactuals import (
    EPOCHS,
    made_rows,
    noisy,
    paper_error,
    paper_loss,
    run,
    verdict,
)
from tests.studies.counterfactuals import (
    check_verdicts,
    claim_of,
    refused,
    rows_of,
    study_tests,
)
from theodolite.core import PredictedAndMeasured, Rows
from theodolite_papers.macdonald2023skip.image_tables import STUDY
from theodolite_papers.macdonald2023skip.image_tables.figure import compare
from theodolite_papers.macdonald2023skip.shared.image_claims import by_run
from theodolite_papers.macdonald2023skip.shared.image_figure import curve_table
from theodolite_papers.macdonald2023skip.shared.image_training import train_cells
from theodolite_papers.macdonald2023skip.shared.printed_tables import printed_rows

NAME = "image_tables"


def swapped(rate, scale, trial, epoch):
    """The original has the modified one's curve, and the other way round."""
    return paper_loss(rate, 1.0 - scale, trial, epoch)


def slower_at_002(rate, scale, trial, epoch):
    swap = rate == 0.02
    return paper_loss(rate, 1.0 - scale if swap else scale, trial, epoch)


def apart(rate, scale, trial, name):
    return paper_error(rate, scale, trial, name) + 0.02 * scale


def by_batches(rate, scale, trial, name):
    return paper_error(rate, scale, trial, name) + 0.02 * (name == "test_error_batch")


def flat(rate, scale, trial, epoch):
    """The same losses at all rates."""
    return paper_loss(0.1, scale, trial + 10 * rate, epoch)


def low_at_005(rate, scale, trial, epoch):
    """Losses that end lowest at half the best rate."""
    return paper_loss(rate, scale, trial, epoch) * (0.5 if rate == 0.05 else 1.0)


def beside_bf16(rows):
    """The paper's networks in bf16, at more rates than the same in TF32."""
    arms = (("bf16", made_rows()), ("tf32", rows))
    return Rows({**row, "precision": name} for name, arm in arms for row in arm)


def rounded(rate, scale, trial, epoch):
    return paper_loss(rate, scale, trial, epoch) * (1 + 0.001 * math.sin(trial))


def spoiled(rate, scale, trial, epoch):
    return 2.0 if scale else paper_loss(rate, scale, trial, epoch)


def six_of_ten(rate, scale, trial):
    lost = rate == 0.2 and not scale and trial % 5 < 3
    return "diverged" if lost else "finished"


def lost_modified(rate, scale, trial):
    return six_of_ten(rate, 1.0 - scale, trial)


def good(rate, scale, trial, epoch):
    """Losses that end low at every rate, also at 0.2."""
    return paper_loss(0.1 if rate == 0.2 else rate, scale, trial, epoch)


# Claim, then a counterfactual on which it holds and one on which it fails.
COUNTERFACTUALS = [
    ("faster-at-the-best-rate", made_rows(), made_rows(swapped)),
    ("faster-at-first", made_rows(), made_rows(swapped)),
    ("consistently-faster", made_rows(), made_rows(swapped)),
    ("order-of-final-losses", made_rows(), made_rows(swapped)),
    ("same-accuracy", made_rows(), made_rows(error=apart)),
    ("best-rate", made_rows(), made_rows(low_at_005)),
    ("original-diverges",
     made_rows(good, trials=40, rates=(0.2,), status=six_of_ten),
     made_rows(good, trials=40, rates=(0.2,))),
    ("modified-never-diverges", made_rows(good),
     made_rows(good, status=lambda rate, scale, trial: "diverged")),
    ("modified-less-stable",
     made_rows(good, trials=40, rates=(0.2,), status=lost_modified),
     made_rows(good, trials=40, rates=(0.2,), status=six_of_ten)),
    ("losses-as-printed", made_rows(), made_rows(swapped)),
    ("accuracies-as-printed", made_rows(), made_rows(error=apart)),
    ("rates-matter", made_rows(), made_rows(flat)),
    ("faster-in-tf32", beside_bf16(made_rows(rates=(0.1,))),
     beside_bf16(made_rows(swapped, rates=(0.1,)))),
    ("bf16-costs-nothing", beside_bf16(made_rows(rounded, rates=(0.1,))),
     beside_bf16(made_rows(spoiled, rates=(0.1,)))),
    ("batch-statistics-alike", made_rows(), made_rows(error=by_batches)),
]  # fmt: skip


@pytest.mark.parametrize("case", COUNTERFACTUALS, ids=[w[0] for w in COUNTERFACTUALS])
def test_each_verdict_can_turn(case):
    name, holding, failing = case
    assert verdict(STUDY, name, holding) == ("HOLDS", None)
    assert verdict(STUDY, name, failing) == ("FAILS", None)


def test_no_claim_on_networks_is_left_without_counterfactuals():
    printed = {"ends-lower-in-print", "one-rate-in-table-2",
               "accuracies-differ-in-print", "trials-left-out"}  # fmt: skip
    assert {w[0] for w in COUNTERFACTUALS} | printed == {c.name for c in STUDY.claims}


@pytest.mark.parametrize("name", ["faster-at-the-best-rate", "consistently-faster"])
def test_noise_decides_nothing(name):
    assert verdict(STUDY, name, made_rows(noisy(0.3))) == ("UNDECIDED", None)


def test_other_images_say_nothing_of_cifar():
    rows = made_rows(dataset="digits")
    for name, *_ in COUNTERFACTUALS:
        wanted = "HOLDS" if name == "faster-at-first" else "NOT RUN"
        assert verdict(STUDY, name, rows) == (wanted, None), name


def test_a_rate_that_is_slower_turns_what_consistently_means():
    verdicts = verdict(STUDY, "consistently-faster", made_rows(slower_at_002))
    assert verdicts == ("UNDECIDED", None)


def test_rates_that_are_missing_leave_all_rates_open():
    rows = made_rows(rates=(0.2, 0.1, 0.05))
    for name in ("consistently-faster", "same-accuracy", "best-rate",
                 "losses-as-printed", "accuracies-as-printed"):  # fmt: skip
        assert verdict(STUDY, name, rows) == ("UNDECIDED", None), name


def test_our_table_stands_beside_the_printed_one():
    both = PredictedAndMeasured(
        printed_rows(1, 2, 3), made_rows(trials=2) + made_rows(rates=(0.1,))
    )
    losses = claim_of(STUDY, "losses-as-printed").rule(both).asides
    name = "modified at 0.1, printed 0.0022 ± 0.0002"
    assert losses[name].value == pytest.approx(0.0022, rel=0.02)
    assert len(losses) == 8
    assert losses[name].error > 0
    assert len(claim_of(STUDY, "accuracies-as-printed").rule(both).asides) == 16


def quantities(rows):
    return {row["quantity"]: row["value"] for row in by_run(Rows(rows))}


def test_the_table_is_of_the_precision_of_most_networks():
    other = made_rows(spoiled, rates=(0.1,))
    for name, *_ in COUNTERFACTUALS:
        if not any(word in name for word in ("16", "tf32", "diverges", "stable")):
            assert verdict(STUDY, name, beside_bf16(other)) == ("HOLDS", None), name
    both = PredictedAndMeasured(Rows(), beside_bf16(other))
    assert curve_table(both).where(rate=0.1).column("n") == [4] * 2 * EPOCHS


class TestWhatCounts:
    """Dead networks are counted apart, stopped ones count for what they reached."""

    def one(self, status, reached=EPOCHS, loss=paper_loss):
        return run(loss, paper_error, 0.1, 0.0, 0, status=status, dataset="cifar10",
                   reached=reached)  # fmt: skip

    def test_a_finished_run(self):
        found = quantities(self.one("finished"))
        assert found["mean_loss"] > 10 ** found["log_loss"]
        losses = [paper_loss(0.1, 0.0, 0, epoch) for epoch in range(1, EPOCHS + 1)]
        logs = [math.log10(loss) for loss in losses]
        assert found["log_loss"] == pytest.approx(sum(logs) / EPOCHS)
        assert found["early_log_loss"] == pytest.approx(sum(logs[:2]) / 2)
        assert found["final_loss"] == losses[-1]
        error = paper_error(0.1, 0.0, 0, "test_error")
        assert found["accuracy"] == pytest.approx(100 * (1 - error))
        assert found["lost"] == 0

    def test_a_dead_run_is_lost_and_enters_no_mean(self):
        rows = self.one("diverged", reached=4)
        rows[-1]["value"] = None  # as a loss that is no number is saved
        assert quantities(rows) == {"lost": 1}
        assert quantities(self.one("finished", loss=lambda *_: 2.4)) == {"lost": 1}

    def test_a_stalled_run_is_lost_but_alive(self):
        found = quantities(self.one("finished", loss=lambda *_: 1.2))
        assert (found["lost"], found["final_loss"]) == (1, 1.2)
        assert quantities(self.one("finished", loss=lambda *_: 1.1))["lost"] == 0

    def test_a_stopped_run_counts_for_what_it_reached(self):
        reached = quantities(self.one("stopped", reached=3))
        wanted = {f"{part}_{loss}" for part in ("early", "first")
                  for loss in ("log_loss", "mean_loss")}  # fmt: skip
        assert reached.keys() == wanted
        first = quantities(self.one("stopped", reached=1))
        assert first.keys() == {"first_log_loss", "first_mean_loss"}


def test_diverged_networks_are_drawn():
    rows = made_rows(rates=(0.2,), status=lambda rate, scale, trial: "diverged")
    rows = rows.where(lambda row: row.get("epoch", 0) < 3)
    found = curve_table(PredictedAndMeasured(Rows(), rows)).where(added_identity=1.0)
    assert found.column("epoch") == list(range(1, EPOCHS + 1))
    assert found.column("n") == [4] * EPOCHS
    assert found.values()[2:].tolist() == pytest.approx([math.log(10)] * 4)


def test_what_is_committed_can_be_run_again():
    config, run = STUDY.presets["paper"], STUDY.committed.run
    networks = run.rows().where(quantity="reached")
    assert len(networks) >= 14
    for row in networks:
        cell = {k: row[k] for k in ("rate", "added_identity", "trial", "precision")}
        assert cell in STUDY.cells(replace(config, precision=row["precision"]))
        assert (
            len(run.of_cell(config, cell).where(quantity="train_loss")) == row["value"]
        )
    assert len(networks.where(added_identity=0.0)) == len(networks) / 2


class TestSmoke(study_tests(NAME)):
    def test_verdicts_at_smoke(self, smoke_root):
        wanted = dict.fromkeys((w[0] for w in COUNTERFACTUALS), "NOT RUN")
        wanted |= {
            "ends-lower-in-print": "FAILS",
            "one-rate-in-table-2": ("FAILS", "HOLDS"),
            "accuracies-differ-in-print": ("FAILS", "HOLDS"),
            "trials-left-out": ("FAILS", None),
        }
        study, both = rows_of(smoke_root, NAME)
        claim = claim_of(study, "faster-at-first")  # of three epochs of tiny networks
        wanted[claim.name] = str(claim.rule(both).outcome)
        check_verdicts(smoke_root, NAME, wanted)


test_what_cannot_be_run_is_refused = refused(NAME, ({"epochs": 91}, "multiple of 3"))


def test_original_and_modified_are_pairs(smoke_root):
    """The same start and batches; other weights at another rate or trial."""
    _, both = rows_of(smoke_root, NAME)
    first = both.measured.where(quantity="test_error", epoch=0)
    assert len(first) == 8
    config = STUDY.presets["smoke"]
    cells = [{"rate": 0.1, "added_identity": s, "trial": 0} for s in (0.0, 0.0, 1.0)]
    losses = [
        Rows(rows).where(quantity="train_loss").values().tolist()
        for rows in train_cells(config, cells, at_once=3)
    ]
    kept = both.measured.where(quantity="train_loss", rate=0.1, trial=0)
    assert losses[0] == losses[1] == kept.where(added_identity=0.0).values().tolist()
    assert losses[2] == kept.where(added_identity=1.0).values().tolist()
    assert losses[0] != losses[2]
    others = both.measured.where(quantity="train_loss", added_identity=0.0, epoch=1)
    assert len(set(others.values())) == 4


def test_cells_of_table_1_stand_beside_ours(smoke_root):
    study, both = rows_of(smoke_root, NAME)
    made = type(both)(both.predicted, made_rows() + both.measured)
    table = {row["label"]: row for row in compare(made)}
    cell = table["loss, modified, rate 0.1"]
    assert cell["predicted"] == 0.0022
    assert cell["measured"] == pytest.approx(0.0022, rel=0.02)
    assert cell["error"] > 0
    assert len(table) == 16 + 2
    # Digits are no CIFAR-10.
    assert len(study.compare(both)) == 2
