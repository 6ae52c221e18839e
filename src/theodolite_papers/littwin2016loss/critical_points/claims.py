"""What section 5 says of critical points, in the limit and counted."""

from .claims_counts import COUNT_CLAIMS
from .claims_limits import LIMIT_CLAIMS

CLAIMS = LIMIT_CLAIMS + COUNT_CLAIMS
