from .ready import collapse as collapse
from .ready import gradient_norm as gradient_norm
from .ready import margins as margins
from .ready import norms as norms
from .ready import sharpness as sharpness
from .ready import trace as trace
