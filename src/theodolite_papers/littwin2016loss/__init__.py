"""Littwin & Wolf (2016), The Loss Surface of Residual Networks."""

from theodolite.studies import Explorer, Paper

PAPER = Paper(
    name="littwin2016loss",
    title="The Loss Surface of Residual Networks",
    authors="Littwin & Wolf",
    year=2016,
    url="https://arxiv.org/abs/1611.02525",
    explorer=Explorer("path_ensemble", ("measured_ensemble", "depth_along_training")),
    studies=(
        "path_counts",
        "path_weights",
        "measured_ensemble",
        "two_degree_losses",
        "batch_norm_scales",
        "weight_norm_growth",
        "depth_along_training",
        "spin_glass_field",
        "critical_points",
    ),
)
