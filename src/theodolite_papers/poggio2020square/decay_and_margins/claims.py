"""What the paper says of decay, norms, margins and label noise in training."""

from .claims_noise import NOISE
from .claims_norms import NORMS
from .claims_starts import STARTS

CLAIMS = (*NORMS, *STARTS, *NOISE)
