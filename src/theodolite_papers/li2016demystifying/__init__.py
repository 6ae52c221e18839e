"""Li, Jiao, Han & Weissman (2016), Demystifying ResNet."""

from theodolite.studies import Paper

PAPER = Paper(
    name="li2016demystifying",
    title="Demystifying ResNet",
    authors="Li, Jiao, Han & Weissman",
    year=2016,
    url="https://arxiv.org/abs/1611.01186",
    studies=(
        "small_weights",
        "weight_norms_cifar",
        "weight_norms",
        "signal_sizes",
        "hessian_at_zero",
        "vanishing_partials",
        "around_zero",
        "relu_exact",
        "initial_condition",
        "equivalence",
        "along_training",
        "final_losses_linear",
        "final_losses_relu",
        "shortcut_depth_cifar",
    ),
)
