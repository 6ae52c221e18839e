"""Rows that travel with the package: their files, and what rests on them."""

import json
from dataclasses import dataclass

import pytest

from theodolite.core import (
    Claim,
    PredictedAndMeasured,
    Rows,
    RunError,
    decide,
    inside,
    known,
    near,
)
from theodolite.studies import Committed, CommittedRun, committed, pack, with_committed
from theodolite.studies.committed import unpack
from theodolite.studies.study import StudyConfig

PACKAGE = "theodolite_papers.li2016demystifying"
OWN = PredictedAndMeasured(
    Rows([{"quantity": "least", "value": 4.0}]),
    Rows([{"quantity": "loss", "depth": 2, "trial": t, "value": 5.0} for t in (0, 1)]),
)


@pytest.fixture
def run(monkeypatch):
    """A committed run that is not a file."""
    saved = {
        "config": {"steps": 3, "depths": [2, 4], "device": "cuda"},
        "columns": ["side", "quantity", "depth", "trial", "value"],
        "lines": [
            ["predicted", "least", None, None, 1.0],
            [None, "loss", 2, 0, 2.0],
            [None, "loss", 4, 0, 3.0],
        ],
    }
    monkeypatch.setattr(committed, "_saved", lambda package, name: saved)
    return CommittedRun(PACKAGE, "made-up", free=("depths",))


@dataclass(frozen=True, kw_only=True)
class Config(StudyConfig):
    """Settings of the made-up run."""

    steps: int = 3
    depths: tuple[int, ...] = (2, 4)


class Study:
    """All of a study that its evidence needs."""

    def __init__(self, run):
        self.committed = Committed(run, ("quantity",), on="images")

    def smaller(self, config):
        return {"steps": "steps 3 of 9"} if config.get("steps") == 3 else {}


def test_files_keep_rows_and_config():
    rows = [{"quantity": "norm", "depth": 38, "value": 1 / 3, "error": None},
            {"quantity": "seconds", "value": 2.5, "graphed": True}]  # fmt: skip
    saved = json.loads(pack(rows, config={"depths": (38, 74)}, made={"torch": "2"}))
    assert saved["config"] == {"depths": [38, 74]}
    first, second = unpack(saved)
    assert first == {"quantity": "norm", "depth": 38, "value": 0.3333333,
                     "error": None}  # fmt: skip
    assert second["graphed"] is True
    assert "depth" not in second


@pytest.mark.parametrize(
    ("value", "error", "kept"),
    [
        (1 / 3, 1e-12, 5e-8),
        (1 / 3, 0.01234, 0.0123),
        (0.25, 1e-12, 1e-12),
        (0.0, 0.5, 0.5),
    ],
)
def test_errors_cover_the_rounding_of_values(value, error, kept):
    row = {"quantity": "norm", "value": value, "error": error}
    (row_back,) = unpack(json.loads(pack([row], config={}, made={})))
    assert row_back["error"] == pytest.approx(kept)
    assert abs(row_back["value"] - value) <= row_back["error"]


def test_what_diverged_and_what_is_not_known_have_no_number():
    rows = [{"quantity": "loss", "value": None, "error": None},
            {"quantity": "ratio", "value": 1e9, "error": float("inf")}]  # fmt: skip
    lost, open_ = unpack(json.loads(pack(rows, config={}, made={})))
    assert (lost["value"], lost["error"]) == (None, None)
    assert (open_["value"], open_["error"]) == (1e9, None)


def test_a_damaged_file_is_named(monkeypatch):
    monkeypatch.setattr(committed, "_text", lambda package, name: "{")
    with pytest.raises(RunError, match=r"committed/torn\.json cannot be read"):
        CommittedRun(PACKAGE, "torn").rows()


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, 1),
        ({"depths": (2,)}, 1),
        ({"device": "cpu"}, 1),
        ({"committed": True}, 1),
        ({"steps": 4}, 0),
    ],
)
def test_a_cell_is_found_where_the_same_settings_made_it(run, changes, found):
    ours = Config(**{"device": "cuda", **changes})
    assert list(run.of_cell(ours, {"depth": 4, "trial": 0}).values()) == [3.0] * found
    assert len(run.of_cell(ours, {})) == 2 * found, "theory is not of a cell"


def test_committed_rows_are_evidence_where_a_config_asks(run):
    assert with_committed.__wrapped__(Study(run), Config(), OWN).committed is None
    evidence = with_committed.__wrapped__(Study(run), Config(committed=True), OWN)
    assert evidence.own is OWN
    assert evidence.on == "images"
    assert evidence.committed.predicted.value(quantity="least") == 1.0
    assert list(evidence.committed.measured.values()) == [2.0, 3.0]
    assert evidence.first is evidence.committed
    assert evidence.smaller == ({"steps": "steps 3 of 9"},) * 2


def test_theory_stands_in_where_the_committed_run_brings_none(run, monkeypatch):
    bare = {"config": {}, "columns": ["quantity", "value"], "lines": [["loss", 2.0]]}
    monkeypatch.setattr(committed, "_saved", lambda package, name: bare)
    assert run.predicted_and_measured(OWN.predicted).predicted == OWN.predicted


def test_a_verdict_says_what_it_rests_on(run):
    def gap(both):
        least = both.predicted.value(quantity="least")
        return known("gap", both.measured.values().min() - least)

    claim = Claim(name="gap", place="here", statement="", rival="",
                  test=inside(gap, near(1, 0)))  # fmt: skip
    verdict = decide(
        claim, with_committed.__wrapped__(Study(run), Config(committed=True), OWN)
    )
    assert (verdict.outcome, verdict.own.outcome, verdict.rests_on) == (
        "HOLDS", "HOLDS", "committed",
    )  # fmt: skip
    wrong = PredictedAndMeasured(
        OWN.predicted, Rows({**r, "value": 7.0} for r in OWN.measured)
    )
    other = decide(
        claim, with_committed.__wrapped__(Study(run), Config(committed=True), wrong)
    )
    assert (other.outcome, other.own.outcome) == ("HOLDS", "FAILS")
    alone = decide(claim, with_committed.__wrapped__(Study(run), Config(), wrong))
    assert (alone.outcome, alone.rests_on) == ("FAILS", "own")
