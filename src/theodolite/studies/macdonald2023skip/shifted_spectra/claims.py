"""What section 6 says of spectra and speed, gathered."""

from theodolite.studies.macdonald2023skip.shifted_spectra.claims_linear import (
    LINEAR_CLAIMS,
)
from theodolite.studies.macdonald2023skip.shifted_spectra.claims_networks import (
    NETWORK_CLAIMS,
)
from theodolite.studies.macdonald2023skip.shifted_spectra.claims_starts import (
    START_CLAIMS,
)

CLAIMS = (*LINEAR_CLAIMS, *NETWORK_CLAIMS, *START_CLAIMS)
