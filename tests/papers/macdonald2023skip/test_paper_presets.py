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


@pytest.mark.parametrize(
    ("study", "images"),
    [
        ("image_tables", {"each": 4}),
        pytest.param(
            "image_tables_cifar100",
            {"name": "cifar100", "each": 1, "classes": 100},
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "image_tables_imagenet",
            {"name": "imagefolder", "each": 1, "classes": 1000},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_networks_of_the_tables_train(study, images):
    fewer = {"epochs": 3, "samples": 16, "batch_size": 16}
    here = {"device": "cpu", "precision": "float32"}
    with colour_images(**images):
        rows = few_steps(study, **fewer, **here)
    check_finite(rows, "train_loss")
