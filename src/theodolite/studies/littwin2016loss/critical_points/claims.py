"""What section 5 says of critical points, in the limit and counted."""

from theodolite.studies.littwin2016loss.critical_points.claims_counts import (
    COUNT_CLAIMS,
)
from theodolite.studies.littwin2016loss.critical_points.claims_limits import (
    LIMIT_CLAIMS,
)

CLAIMS = LIMIT_CLAIMS + COUNT_CLAIMS
