"""A file an instrument: what it means, how it is computed, when it lies, and a plot.

The docstring of each is the text of its page, ``draw`` its plot; the page shows its
code. Their order here is that of the site.
"""

ORDER = (
    "hessian",
    "spectrum",
    "extreme_eigenvalues",
    "spectral_density",
    "trace",
    "diagonal",
    "index",
    "condition",
    "by_block",
    "sharpness_along",
    "singular_values",
    "tangent_kernel",
    "critical_points",
    "collapse",
    "classifier_norms",
    "path_ensemble",
    "lesion",
    "unravel",
    "certificate",
    "guaranteed_step",
)
