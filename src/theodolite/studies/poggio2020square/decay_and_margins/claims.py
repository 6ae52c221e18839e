"""What the paper says of decay, norms, margins and label noise in training."""

from theodolite.studies.poggio2020square.decay_and_margins.claims_noise import NOISE
from theodolite.studies.poggio2020square.decay_and_margins.claims_norms import NORMS
from theodolite.studies.poggio2020square.decay_and_margins.claims_starts import STARTS

CLAIMS = (*NORMS, *STARTS, *NOISE)
