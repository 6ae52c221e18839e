"""What the paper says of collapse under the square loss, and of cross-entropy."""

from theodolite.studies.poggio2020square.collapse_everywhere.claims_collapse import (
    COLLAPSE,
)
from theodolite.studies.poggio2020square.collapse_everywhere.claims_losses import LOSSES

CLAIMS = (*COLLAPSE, *LOSSES)
