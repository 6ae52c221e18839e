"""One network of every preset at the paper scale trains for a few steps."""

import pytest

from tests.papers.presets import check_finite, colour_images, few_steps


@pytest.mark.parametrize("kind", ["chain", "res", "average"])
def test_networks_of_figure_2_train(kind):
    fewer = {"spectra_at": (0,), "parameters_at": (), "script_at": (), "steps": 10}
    rows = few_steps("shifted_spectra", cell={"part": "figure", "kind": kind}, **fewer)
    check_finite(rows, "loss", "mean")


def test_interventions_train():
    check_finite(few_steps("why_it_helps", steps=10), "loss", "mean")


def test_networks_of_table_1_train():
    fewer = {
        "epochs": 3,
        "samples": 32,
        "batch_size": 32,
        "device": "cpu",
        "precision": "float32",
    }
    with colour_images(each=8):
        rows = few_steps("image_tables", cell={"rate": 0.1}, **fewer)
    check_finite(rows, "train_loss")
