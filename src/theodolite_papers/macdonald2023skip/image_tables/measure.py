"""Train one network of a pair."""

from ..shared.image_training import measure_cell

measure = measure_cell
