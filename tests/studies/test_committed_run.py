"""Rows that travel with the package: their files, and what rests on them."""

import json

import pytest
from theodolite.studies.committed_first import chosen, drawn, drawn_own, judged, own
from theodolite.studies.committed_run import CELL, CommittedRun, pack, unpack

from theodolite.core import Claim, Rows, RunError, holds_if
from theodolite.studies import committed_run
from theodolite.studies.study import Drawing, StudyConfig

PACKAGE = "theodolite.studies.li2016demystifying"
OURS = Rows(
    [{"quantity": "loss", "depth": 2, "trial": t, "value": 5.0} for t in (0, 1)]
)
THEORY = Rows([{"quantity": "least", "value": 4.0}])
THEIRS = Rows(
    [
        {**CELL, "quantity": "least", "value": 1.0, "side": "predicted"},
        *({**CELL, "quantity": "loss", "depth": 2, "trial": t, "value": 2.0}
          for t in range(3)),
    ]
)  # fmt: skip


def check(predicted, measured):
    gap = measured.values().mean() - predicted.value(quantity="least")
    return holds_if(gap == 1, {"gap": gap}, holds="one apart", fails="not one apart")


CLAIM = Claim(name="gap", place="here", statement="", rival="", check=check)


@pytest.fixture
def run(monkeypatch):
    """A committed run that is not a file."""
    saved = {
        "config": {"steps": 3, "depths": [2, 4], "device": "cuda", "committed": ""},
        "columns": ["side", "quantity", "depth", "trial", "value"],
        "lines": [
            ["predicted", "least", None, None, 1.0],
            [None, "loss", 2, 0, 2.0],
            [None, "loss", 4, 0, 3.0],
        ],
    }
    monkeypatch.setattr(committed_run, "_saved", lambda package, name: saved)
    return CommittedRun(PACKAGE, "made-up", free=("depths",))


def test_files_keep_rows_and_config():
    rows = [{"quantity": "norm", "depth": 38, "value": 1 / 3, "error": None},
            {"quantity": "seconds", "value": 2.5, "graphed": True}]  # fmt: skip
    saved = json.loads(pack(rows, config={"depths": (38, 74)}, made={"torch": "2"}))
    assert saved["config"] == {"depths": [38, 74]}
    first, second = unpack(saved)
    assert first == {"source": "committed", "scale": "paper", "quantity": "norm",
                     "depth": 38, "value": 0.3333333, "error": None}  # fmt: skip
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
    (found,) = unpack(json.loads(pack([row], config={}, made={})))
    assert found["error"] == pytest.approx(kept)
    assert abs(found["value"] - value) <= found["error"]


def test_what_diverged_and_what_is_a_bound_have_no_number():
    rows = [{"quantity": "loss", "value": None, "error": None},
            {"quantity": "ratio", "value": 1e9, "error": float("inf")}]  # fmt: skip
    lost, bound = unpack(json.loads(pack(rows, config={}, made={})))
    assert (lost["value"], lost["error"]) == (None, None)
    assert (bound["value"], bound["error"]) == (1e9, None)


def test_a_damaged_file_is_named(monkeypatch):
    monkeypatch.setattr(committed_run, "_text", lambda package, name: "{")
    with pytest.raises(RunError, match=r"committed/torn\.json cannot be read"):
        CommittedRun(PACKAGE, "torn").rows()


class Config(StudyConfig):
    """Settings of the made-up run, with attributes set by the test."""

    def __init__(self, **settings):
        for name, value in settings.items():
            object.__setattr__(self, name, value)


@pytest.mark.parametrize(
    ("changes", "found"),
    [({}, 1), ({"depths": [2]}, 1), ({"device": "cpu"}, 1), ({"steps": 4}, 0)],
)
def test_a_cell_is_found_where_the_same_settings_made_it(
    run, monkeypatch, changes, found
):
    monkeypatch.setattr(committed_run, "plain", lambda config: vars(config))
    ours = Config(**{"steps": 3, "depths": [2, 4], "device": "cuda", **changes})
    rows = run.of_cell(ours, {"source": "trained", "depth": 4, "trial": 0})
    assert list(rows.values()) == [3.0] * found
    assert not len(run.of_cell(ours, CELL))
    assert len(run.of_cell(ours, {})) == 2 * found, "theory is not of a cell"


def test_rows_are_fetched_by_a_cell_where_a_config_asks(run):
    assert run.cells(Config(committed="digest")) == [{"source": "committed"}]
    assert run.cells(Config(committed="")) == []


def test_both_roads_are_the_committed_ones_where_they_are_there():
    assert chosen(THEORY, OURS) == (THEORY, OURS)
    predicted, measured = chosen(THEORY, OURS + THEIRS)
    assert predicted.value(quantity="least") == 1.0
    assert measured == THEIRS.where(quantity="loss")
    assert own(OURS + THEIRS) == OURS


def test_theory_that_no_committed_row_replaces_stays():
    rows = THEIRS.where(quantity="loss")
    more = Rows([{"quantity": "least", "value": 9.0, "source": "trained"}])
    assert chosen(THEORY + more, OURS + rows)[0] == THEORY


def test_a_verdict_says_what_it_rests_on():
    alone = judged(CLAIM).check(THEORY, OURS)
    assert (alone.outcome, alone.rests_on, alone.because) == ("HOLDS", "", "one apart")
    wrong = Rows({**row, "value": 7.0} for row in OURS)
    found = judged(CLAIM).check(THEORY, wrong + THEIRS)
    assert (found.outcome, found.rests_on) == ("HOLDS", "committed")
    assert found.because == (
        "one apart (by the committed run, up to 3 networks a point; "
        "by this run alone: FAILS)"
    )
    told = found.to_dict()
    assert (told["rests_on"], told["alone"]) == ("committed", "FAILS")
    only = judged(CLAIM).check(THEORY, THEIRS)
    assert only.because == "one apart (by the committed run, up to 3 networks a point)"
    assert only.alone is None


def test_drawings_show_one_or_the_other():
    seen = []
    drawing = Drawing("a", "caption", lambda p, m: seen.append((p, m)))  # type: ignore
    drawn(drawing).draw(THEORY, OURS + THEIRS)
    other = drawn_own(drawing, "b", "ours")
    other.draw(THEORY, OURS + THEIRS)
    assert seen == [chosen(THEORY, OURS + THEIRS), (THEORY, OURS)]
    assert (other.name, other.caption) == ("b", "ours")
