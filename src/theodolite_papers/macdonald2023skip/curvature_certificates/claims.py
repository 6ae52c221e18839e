"""What sections 2 and 4 and the appendices claim, and where they are wrong."""

from .claims_basics import CLAIMS as BACKGROUND
from .claims_kernel import CLAIMS as REGULARITY
from .claims_layers import CLAIMS as LAYERS
from .claims_smooth import CLAIMS as SMOOTHNESS

CLAIMS = (*BACKGROUND, *LAYERS, *SMOOTHNESS, *REGULARITY)
