"""MacDonald et al. (2023), On skip connections and normalisation layers."""

from theodolite.studies import Paper

PAPER = Paper(
    name="macdonald2023skip",
    title="On skip connections and normalisation layers in deep optimisation",
    authors="MacDonald, Valmadre, Saratchandran & Lucey",
    year=2023,
    url="https://arxiv.org/abs/2210.05371",
    studies=(
        "curvature_certificates",
        "global_convergence",
        "shifted_spectra",
        "image_tables",
        "image_tables_cifar100",
        "image_tables_imagenet",
    ),
)
