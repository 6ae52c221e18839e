"""What networks in training say, at paper scale."""

import re
from pathlib import Path

import pytest

from tests.papers.presets import check_finite, few_steps
from theodolite.core import PredictedAndMeasured, Rows, decide
from theodolite.studies import find, with_committed

HOLDS, FAILS, UNDECIDED = "HOLDS", "FAILS", "UNDECIDED"
SAID = {
    "batch_norm_scales": {
        "squares-add-up": FAILS,
        "deviations-grow": HOLDS,
        "scales-grow": UNDECIDED,
        "later-stages-higher": UNDECIDED,
        "first-layer-differs": UNDECIDED,
        "unskipped-scale-grows": UNDECIDED,
        "scales-grow-late": UNDECIDED,
    },
    "weight_norm_growth": {
        "norm-grows": UNDECIDED,
        "norm-grows-steadily": UNDECIDED,
        "every-layer-grows": UNDECIDED,
        "growth-is-first-order": UNDECIDED,
    },
    "depth_along_training": {
        "initially-below-half": HOLDS,
        "unit-scales-extremely-shallow": UNDECIDED,
        "early-gradients-shallow": UNDECIDED,
        "scales-control-depth": HOLDS,
        "scale-is-lambda": UNDECIDED,
        "deeper-with-batch-norm": UNDECIDED,
        "deeper-without-norm": UNDECIDED,
        "deeper-and-deeper": UNDECIDED,
        "scales-are-the-mechanism": UNDECIDED,
        "deep-gradients-dominate": UNDECIDED,
        "scales-grow-under-deep-gradients": UNDECIDED,
        "loss-is-low-before-depth": UNDECIDED,
        "images-initially-below-half": UNDECIDED,
        "images-extremely-shallow": UNDECIDED,
        "images-deeper-with-batch-norm": UNDECIDED,
        "images-deeper-without-norm": UNDECIDED,
        "images-deeper-and-deeper": UNDECIDED,
        "images-scales-are-the-mechanism": UNDECIDED,
        "gradients-follow-scales": HOLDS,
        "gradients-deeper-with-batch-norm": UNDECIDED,
        "gradients-deeper-without-norm": UNDECIDED,
        "gradients-deeper-and-deeper": UNDECIDED,
        "gradients-moved-by-scales": UNDECIDED,
        "deeper-late": FAILS,
        "gains-foretell-depth": UNDECIDED,
        "paper-s-beta-foretells-depth": UNDECIDED,
    },
}


@pytest.mark.parametrize("name", SAID)
def test_verdicts_on_committed_rows_of_networks_that_are_all_alive(name):
    study = find(name).study
    nothing = PredictedAndMeasured(Rows(), Rows())
    rows = with_committed(study, study.presets["quick"], nothing)
    said = {claim.name: decide(claim, rows) for claim in study.claims}
    assert {k: str(v.outcome) for k, v in said.items()} == SAID[name]
    for verdict in said.values():
        assert verdict.committed.died.startswith("0 of "), verdict.committed.died
        if verdict.committed.corrected is not None:
            assert verdict.committed.confirmed


@pytest.mark.parametrize("name", SAID)
def test_every_cell_of_the_run_is_there(name):
    """All of the file's config, which has fewer seeds than planned on images alone."""
    study = find(name).study
    run = study.committed.run
    rows, config = run.rows(), study.config_from(run.config())
    cells = study.cells(config)
    assert config.n_seeds == study.presets["paper"].n_seeds
    # The labels of a cell depend on its kind, so each kind is looked up apart.
    there = {
        labels: {tuple(row.get(label) for label in labels) for row in rows}
        for labels in {tuple(cell) for cell in cells}
    }
    for cell in cells:
        assert tuple(cell.values()) in there[tuple(cell)], cell
    ends = rows.where(quantity="finished").values()
    assert (ends == 1).all()


def test_depths_that_the_documents_quote():
    """Every kind of network has its place in the table of docs/studies.md."""
    rows = find("depth_along_training").study.committed.run.rows()
    depths = rows.where(quantity="output_depth", horizon="long")
    text = (Path(__file__).parents[3] / "docs" / "studies.md").read_text("utf-8")
    lines = re.findall(r"^\| (\w+), depth (\d+) \|(.*)\|$", text, re.MULTILINE)
    seen = 0
    for task, depth, cells in lines:
        kind = depths.where(task=task, depth=int(depth))
        for norm, cell in zip(
            ("scalar", "batch", "none"), cells.split("|"), strict=True
        ):
            mine = kind.where(norm=norm)
            last = max(mine.levels("step"), default=0)
            assert bool(cell.strip()) == bool(len(mine))
            if cell.strip():
                means = (mine.where(step=step).values().mean() for step in (0, last))
                assert cell.strip() == " → ".join(f"{mean:.3f}" for mean in means)
                seen += 1
    assert seen == 18


CELLS = {"depth_along_training": {"family": "layerwise", "task": "gaussians"}}


@pytest.mark.parametrize("name", SAID)
def test_the_paper_scale_trains(name):
    fewer = {"updates": 16, "long_updates": 16, "samples": 1000}
    rows = few_steps(name, cell=CELLS.get(name), device="cpu", **fewer)
    check_finite(rows, "train_loss", "test_error")
