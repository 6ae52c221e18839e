"""Li, Jiao, Han & Weissman (2016), Demystifying ResNet."""

from theodolite.studies.catalogue import Paper

PAPER = Paper(
    name="li2016demystifying",
    title="Demystifying ResNet",
    authors="Li, Jiao, Han & Weissman",
    year=2016,
    studies=("hessian_at_zero", "around_zero", "initial_condition"),
)
