"""Networks of every preset at the paper scale train for a few steps."""

import pytest

from tests.papers.presets import check_finite, colour_images, few_steps

DIGITS = {"dataset": "mnist5k", "steps": 4}
SHORT = {
    "along_training": (
        {"task": "run"},
        {"dataset": "mnist5k", "run_steps": 6},
        ("largest", "index", "gradient", "curvature"),
    ),
    "weight_norms": ({}, DIGITS, ("norm",)),
    "final_losses_linear": ({"network": "two_shortcut"}, DIGITS, ("excess",)),
    "final_losses_relu": (
        {"network": "two_shortcut"},
        {**DIGITS, "device": "cpu"},
        ("final_loss",),
    ),
}


SLOW = {"along_training", "final_losses_relu"}


@pytest.mark.parametrize(
    "study",
    [pytest.param(s, marks=[pytest.mark.slow] if s in SLOW else []) for s in SHORT],
)
def test_networks_on_digits_train(study):
    cell, fewer, quantities = SHORT[study]
    check_finite(few_steps(study, cell=cell, **fewer), *quantities)


@pytest.mark.parametrize("study", ["weight_norms_cifar", "shortcut_depth_cifar"])
def test_networks_on_photographs_train(study):
    here = {"device": "cpu", "precision": "float32", "epochs": 1}
    here |= {"samples": 32, "batch_size": 32}
    with colour_images(each=4):
        rows = few_steps(study, cell={"depth": 38, "shortcut": 2}, **here)
    check_finite(rows, "train_loss", "norm")


def test_networks_whose_signals_are_measured_train():
    cell = {"task": "trained", "depth": 26}
    rows = few_steps("signal_sizes", cell=cell, epochs=1, samples=256)
    check_finite(rows, *rows.levels("quantity"))
