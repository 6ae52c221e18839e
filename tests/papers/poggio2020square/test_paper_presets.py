"""Every preset of the paper scale trains."""

import pytest

from tests.papers.presets import check_finite, colour_images, few_steps

SHORT = {
    "norm_flow": ({"part": "networks"}, {"end": 1.0}, ("flow_norm", "network_drop")),
    "linear_flows": ({}, {"end": 5.0, "horizon": 2.0}, ()),
    "normalised_layers": ({"part": "batch norm"}, {}, ("row_pull", "blocks_gap")),
    "margins_and_bounds": ({"part": "networks"}, {"steps": 20}, ("scale", "ramp")),
    "stationary_layers": (
        {"kind": "relu"},
        {"steps": 20, "polish": 2},
        ("objective", "sum_gap"),
    ),
}


@pytest.mark.parametrize("study", SHORT)
def test_small_networks_train(study):
    cell, fewer, quantities = SHORT[study]
    rows = few_steps(study, cell=cell, **fewer)
    check_finite(rows, *(quantities or rows.levels("quantity")))


@pytest.mark.parametrize(
    ("study", "cell", "fewer"),
    [
        (
            "trained_norms",
            {"family": "medium_dense"},
            {"medium_epochs": 10, "drawn": 0},
        ),
        (
            "trained_norms",
            {"family": "narrow_convolutional"},
            {"narrow_epochs": 10, "drawn": 0},
        ),
        ("decay_and_margins", {}, {"epochs": 20, "stages": 2}),
        ("collapse_everywhere", {"labels": "given"}, {"epochs": 20, "samples": 0}),
    ],
)
def test_classifiers_train(study, cell, fewer):
    with colour_images(each=16 if study == "collapse_everywhere" else 64):
        rows = few_steps(study, cell=cell, **fewer)
    if study == "trained_norms":
        # Without normalisation the largest starts may diverge; a claim counts them.
        rows = rows.where(lambda row: not row["condition"].startswith("plain"))
        assert set(rows.where(quantity="alive").values()) == {1.0}
    check_finite(rows, "train_loss", "test_error", most=10)
