"""Poggio & Liao (2020), Generalization in deep network classifiers, square loss."""

from theodolite.studies import Paper

PAPER = Paper(
    name="poggio2020square",
    title="Generalization in deep network classifiers trained with the square loss",
    authors="Poggio & Liao",
    year=2020,
    studies=(
        "norm_flow",
        "linear_flows",
        "normalised_layers",
        "trained_norms",
        "decay_and_margins",
        "margins_and_bounds",
        "stationary_layers",
        "collapse_everywhere",
    ),
)
