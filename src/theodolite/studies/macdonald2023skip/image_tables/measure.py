"""Train one network of a pair."""

from theodolite.studies.macdonald2023skip.shared.image_training import measure_cell

measure = measure_cell
