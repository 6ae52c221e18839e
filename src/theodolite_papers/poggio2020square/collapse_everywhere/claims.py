"""What the paper says of collapse under the square loss, and of cross-entropy."""

from .claims_collapse import COLLAPSE
from .claims_losses import LOSSES

CLAIMS = (*COLLAPSE, *LOSSES)
