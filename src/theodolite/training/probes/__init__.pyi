from .builtin import collapse as collapse
from .builtin import gradient_norm as gradient_norm
from .builtin import margins as margins
from .builtin import norms as norms
from .builtin import sharpness as sharpness
from .builtin import trace as trace
