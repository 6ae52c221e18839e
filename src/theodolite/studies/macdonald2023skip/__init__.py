"""MacDonald et al. (2023), On skip connections and normalisation layers."""

from theodolite.studies.catalogue import Paper

PAPER = Paper(
    name="macdonald2023skip",
    title="On skip connections and normalisation layers in deep optimisation",
    authors="MacDonald, Valmadre, Saratchandran & Lucey",
    year=2023,
    studies=("shifted_spectra", "why_it_helps"),
)
