"""What the paper says of layers and features at rest."""

from .claims_collapse import COLLAPSE
from .claims_constraint import CONSTRAINT
from .claims_matrices import MATRICES

CLAIMS = (*CONSTRAINT, *MATRICES, *COLLAPSE)
