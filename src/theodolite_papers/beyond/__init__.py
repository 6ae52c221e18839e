"""Studies that are wholly ours: questions that the papers raise and do not ask."""

from theodolite.studies import Paper

PAPER = Paper(
    name="beyond",
    title="Beyond the papers",
    authors="The theodolite developers",
    year=2026,
    studies=(
        "phase_diagram",
        "scheduled_norm",
        "why_it_helps",
        "whole_set_curvature",
        "certified_ratio",
    ),
)
