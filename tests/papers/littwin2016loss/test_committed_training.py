"""What networks in training say, at paper scale."""

import re
from pathlib import Path

import pytest

from theodolite.core import PredictedAndMeasured, Rows, decide
from theodolite.studies import find, with_committed

HOLDS, FAILS, UNDECIDED = "HOLDS", "FAILS", "UNDECIDED"
SAID = {
    "batch_norm_scales": {
        "squares-add-up": FAILS,
        "deviations-grow": HOLDS,
        "scales-grow": FAILS,
        "scales-grow-on-average": HOLDS,
        "later-stages-higher": FAILS,
        "first-layer-differs": FAILS,
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
        "initially-below-half": HOLDS,
        "unit-scales-extremely-shallow": FAILS,
        "early-gradients-shallow": FAILS,
        "scales-control-depth": HOLDS,
        "scale-is-lambda": FAILS,
        "deeper-with-batch-norm": FAILS,
        "deeper-without-norm": FAILS,
        "deeper-and-deeper": FAILS,
        "scales-are-the-mechanism": FAILS,
        "images-initially-below-half": FAILS,
        "images-extremely-shallow": FAILS,
        "images-deeper-with-batch-norm": FAILS,
        "images-deeper-without-norm": HOLDS,
        "images-deeper-and-deeper": FAILS,
        "images-scales-are-the-mechanism": FAILS,
        "gradients-follow-scales": HOLDS,
        "gradients-deeper-with-batch-norm": FAILS,
        "gradients-deeper-without-norm": UNDECIDED,
        "gradients-deeper-and-deeper": FAILS,
        "gradients-moved-by-scales": FAILS,
        "deeper-late": FAILS,
        "gains-foretell-depth": FAILS,
        "paper-s-beta-foretells-depth": UNDECIDED,
    },
}


def committed(name):
    """Return the claims of a study by name, and the evidence of its committed rows."""
    study = find(name).study
    nothing = PredictedAndMeasured(Rows(), Rows())
    claims = {claim.name: claim for claim in study.claims}
    return claims, with_committed(study, study.presets["quick"], nothing)


@pytest.mark.parametrize("name", SAID)
def test_verdicts_on_committed_rows(name):
    claims, rows = committed(name)
    said = {name: decide(claim, rows) for name, claim in claims.items()}
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
    measured = {tuple(row[k] for k in labels) for row in run.rows()}
    assert measured == {tuple(cell[k] for k in labels) for cell in cells}
    assert len(run.of_cell(paper, cells[0]))
    ends = run.rows().where(quantity="finished").values()
    assert (ends == 1).all()


@pytest.mark.parametrize(
    ("name", "held", "failed"),
    [
        ("deeper-with-batch-norm", 0, 8),
        ("images-deeper-with-batch-norm", 0, 3),
        ("deeper-without-norm", 2, 2),
        ("images-deeper-without-norm", 3, 0),
        ("initially-below-half", 12, 0),
        ("unit-scales-extremely-shallow", 4, 4),
        ("scale-is-lambda", 0, 8),
    ],
)
def test_kinds_of_network_that_agree(name, held, failed):
    """With batch normalisation every ensemble becomes shallower."""
    claims, rows = committed("depth_along_training")
    pieces = decide(claims[name], rows).committed.judged.pieces
    outcomes = [str(piece.outcome) for piece in pieces]
    assert (outcomes.count(HOLDS), outcomes.count(FAILS)) == (held, failed)
    assert len(outcomes) == held + failed


def test_doubled_scales_of_norms_do_not_double_beta_and_doubled_weights_do():
    claims, rows = committed("depth_along_training")
    told = claims["scale-is-lambda"].rule(rows.committed).asides
    named = {
        norm: [v.value for k, v in told.items() if f", {norm}, " in k]
        for norm in ("scalar", "batch", "none")
    }
    assert [len(values) for values in named.values()] == [4, 4, 4]
    assert max(named["scalar"] + named["batch"]) < 1.35
    assert 2.3 < min(named["none"]) < max(named["none"]) < 2.6


def test_depths_that_the_documents_quote():
    """Every kind of network has its place in the table of docs/studies.md."""
    rows = find("depth_along_training").study.committed.run.rows()
    depths = rows.where(quantity="output_depth")
    text = (Path(__file__).parents[3] / "docs" / "studies.md").read_text("utf-8")
    lines = re.findall(r"^\| (\w+), depth (\d+) \|(.*)\|$", text, re.MULTILINE)
    seen = 0
    for task, depth, cells in lines:
        kind = depths.where(task=task, depth=int(depth))
        for norm, cell in zip(
            ("scalar", "batch", "none"), cells.split("|"), strict=True
        ):
            mine = kind.where(norm=norm)
            assert bool(cell.strip()) == bool(len(mine))
            if cell.strip():
                means = (mine.where(stage=stage).values().mean() for stage in (0, 8))
                assert cell.strip() == " → ".join(f"{mean:.3f}" for mean in means)
                seen += 1
    assert seen == 18
