"""What section 6 says of spectra and speed, gathered."""

from .claims_linear import LINEAR_CLAIMS
from .claims_networks import NETWORK_CLAIMS
from .claims_starts import START_CLAIMS

CLAIMS = (*LINEAR_CLAIMS, *NETWORK_CLAIMS, *START_CLAIMS)
