"""What sections 2 and 4 and the appendices claim, and where they are wrong."""

from theodolite.studies.macdonald2023skip.curvature_certificates.claims_basics import (
    CLAIMS as BACKGROUND,
)
from theodolite.studies.macdonald2023skip.curvature_certificates.claims_kernel import (
    CLAIMS as REGULARITY,
)
from theodolite.studies.macdonald2023skip.curvature_certificates.claims_layers import (
    CLAIMS as LAYERS,
)
from theodolite.studies.macdonald2023skip.curvature_certificates.claims_smooth import (
    CLAIMS as SMOOTHNESS,
)

CLAIMS = (*BACKGROUND, *LAYERS, *SMOOTHNESS, *REGULARITY)
