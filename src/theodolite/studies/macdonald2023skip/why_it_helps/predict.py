"""Theory has no prediction of its own here: the hypothesis is put to the test."""

from theodolite.core import Rows
from theodolite.studies.macdonald2023skip.why_it_helps.config import Config


def predict(config: Config) -> Rows:
    """Return no rows."""
    return Rows()
