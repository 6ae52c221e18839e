"""Networks of every preset at the paper scale train for a few steps."""

import pytest

from tests.papers.presets import check_finite, colour_images, few_steps


@pytest.mark.parametrize("method", ["decay", "grown", "bare", "held"])
def test_networks_of_each_schedule_train(method):
    rows = few_steps("scheduled_norm", cell={"method": method}, steps=10)
    check_finite(rows, "train_loss", "rho", "mean_margin")


def test_a_network_of_the_phase_diagram_trains():
    rows = few_steps("phase_diagram", steps=10, samples=256)
    lowest = min(row["value"] for row in rows.where(quantity="final_loss")
                 if row["value"] is not None)  # fmt: skip
    assert lowest < 1.0


@pytest.mark.slow
def test_descent_of_all_samples_trains():
    fewer = {"steps": 3, "epochs": 1, "samples": 40, "descent_samples": 40,
             "batch_size": 20, "read_batches": 2, "products": 10}  # fmt: skip
    cell = {"rule": "descent", "moment": 1.0}
    with colour_images(each=8):
        rows = few_steps("whole_set_curvature", cell=cell, device="cpu", **fewer)
    check_finite(rows, "sharpness")
