"""What the paper says of layers and features at rest."""

from theodolite.studies.poggio2020square.stationary_layers.claims_collapse import (
    COLLAPSE,
)
from theodolite.studies.poggio2020square.stationary_layers.claims_constraint import (
    CONSTRAINT,
)
from theodolite.studies.poggio2020square.stationary_layers.claims_matrices import (
    MATRICES,
)

CLAIMS = (*CONSTRAINT, *MATRICES, *COLLAPSE)
