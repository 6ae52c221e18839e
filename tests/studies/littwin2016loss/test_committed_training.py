"""What 140 networks in training say, at paper scale."""

import pytest

from theodolite.core import Roads, Rows, decide
from theodolite.studies import evidence, find

HOLDS, FAILS, UNDECIDED = "HOLDS", "FAILS", "UNDECIDED"
SAID = {
    "batch_norm_scales": {
        "squares-add-up": FAILS,
        "deviations-grow": HOLDS,
        "scales-grow": HOLDS,
        "later-stages-higher": FAILS,
        "first-layer-differs": UNDECIDED,
        "unskipped-scale-grows": HOLDS,
        "scales-grow-late": HOLDS,
        "standard-scales-grow": HOLDS,
        "standard-first-layer-differs": FAILS,
    },
    "weight_norm_growth": {
        "norm-grows": HOLDS,
        "norm-grows-steadily": FAILS,
        "every-layer-grows": HOLDS,
        "growth-is-first-order": UNDECIDED,
    },
    "depth_along_training": {
        "initially-below-half": FAILS,
        "unit-scales-extremely-shallow": FAILS,
        "scales-control-depth": HOLDS,
        "deeper-with-batch-norm": FAILS,
        "deeper-without-norm": FAILS,
        "deeper-and-deeper": FAILS,
        "deeper-late": FAILS,
        "scales-are-the-mechanism": FAILS,
        "gains-foretell-depth": FAILS,
        "paper-s-beta-foretells-depth": UNDECIDED,
    },
}


@pytest.mark.parametrize("name", SAID)
def test_verdicts_on_committed_rows(name):
    study = find(name).study
    found = evidence(study, study.presets["quick"], Roads(Rows(), Rows()))
    said = {claim.name: decide(claim, found) for claim in study.claims}
    assert {k: str(v.outcome) for k, v in said.items()} == SAID[name]
    for verdict in said.values():
        if verdict.committed.corrected is not None:
            assert verdict.committed.confirmed


@pytest.mark.parametrize("name", SAID)
def test_the_paper_scale_is_what_was_run(name):
    """Every cell of the preset was run to the end, and nothing else."""
    study = find(name).study
    paper, run = study.presets["paper"], study.committed.run
    cells = study.cells(paper)
    labels = list(cells[0])
    found = {tuple(row[k] for k in labels) for row in run.rows()}
    assert found == {tuple(cell[k] for k in labels) for cell in cells}
    assert len(run.of_cell(paper, cells[0]))
    ends = run.rows().where(quantity="finished").values()
    assert (ends == 1).all()


def test_with_batch_norm_nearly_every_ensemble_becomes_shallower():
    study = find("depth_along_training").study
    found = evidence(study, study.presets["quick"], Roads(Rows(), Rows()))
    (claim,) = [c for c in study.claims if c.name == "deeper-with-batch-norm"]
    pieces = decide(claim, found).committed.judged.pieces
    assert [str(piece.outcome) for piece in pieces].count("FAILS") == 21
    assert len(pieces) == 22
