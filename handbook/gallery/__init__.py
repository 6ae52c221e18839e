"""A file per instrument: what it means, how it is computed, when it lies, and a plot.

The docstring of each is the text of its page, ``draw`` its plot; the page shows its
code. Their titles, in the order of the site, are below.
"""

TITLES = {
    "hessian": "The Hessian",
    "spectrum": "All eigenvalues",
    "extreme_eigenvalues": "Largest and smallest eigenvalues",
    "spectral_density": "Density of eigenvalues",
    "trace": "Trace",
    "diagonal": "Diagonal",
    "index": "Share of negative eigenvalues",
    "condition": "Condition number",
    "by_block": "Curvature by block",
    "sharpness_along": "Sharpness along training",
    "singular_values": "Singular values of a block",
    "tangent_kernel": "Tangent kernel",
    "critical_points": "Critical points on a sphere",
    "collapse": "Neural collapse",
    "classifier_norms": "Norms and margins of a classifier",
    "path_ensemble": "Paths by length",
    "lesion": "Lesions",
    "unravel": "Every single path",
    "certificate": "Guarantees from the layers",
    "guaranteed_step": "A step that cannot raise the loss",
}
