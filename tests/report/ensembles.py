"""A paper with an explorer, and exhibits as studies write them."""

from math import comb

from tests.report.papers import claim, spread, study
from theodolite.core import above, judge, sampled

PAPER = {
    "name": "littwin2016loss",
    "title": "The loss surface of residual networks",
    "authors": "Littwin & Wolf",
    "year": 2016,
    "studies": ["measured_ensemble", "depth_along_training"],
    "explorer": {
        "name": "path_ensemble",
        "studies": ["measured_ensemble", "depth_along_training"],
    },
}
COLUMNS = ["quantity", "network", "part", "length", "step", "value", "error"]
# Means alone, as rows along training may have them.
MEANS = {
    "name": "path_ensembles",
    "source": "committed",
    "columns": ["quantity", "network", "part", "blocks", "value", "error"],
    "lines": [
        ["effective_depth", "deep", "gradient", 53, 20.0, 0.5],
        ["spread", "deep", "gradient", 53, 3.0, 0.1],
        ["beta", "deep", "gradient", 53, 0.62, 0.02],
        ["effective_depth", "impossible", "gradient", 53, 54.0, 0.5],
    ],
}
# Networks by name: blocks, and a scale for each step.
NETWORKS = {"wide <b>net</b>": (29, {None: 0.7}), "narrow": (9, {0: 0.2, 500: 1.5})}


def energies(blocks, beta):
    """Shares of energy by the number of branches taken, as if Eq 16 held."""
    raw = [(comb(blocks, k) * beta**k) ** 2 for k in range(blocks + 1)]
    return [one / sum(raw) for one in raw]


def lines():
    rows = []
    for name, (blocks, scales) in NETWORKS.items():
        for step, beta in scales.items():
            for taken, share in enumerate(energies(blocks, beta)):
                error = 0.05 * share
                rows.append(["share", name, "output", taken, step, share, error])
            if name == "narrow":
                rows.append(["beta", name, "output", None, step, beta, 0.01])
    return rows


def exhibit(**changes):
    table = {"name": "path_ensembles", "source": "own"}
    return {**table, "columns": COLUMNS, "lines": lines(), **changes}


def measured(exhibits):
    """A run of ``measured_ensemble`` that brings these exhibits."""
    made = study(
        PAPER,
        "measured_ensemble",
        "The ensemble of real networks",
        "Energy by the number of branches taken.",
        [
            claim(
                "below_half_depth",
                "Section 3",
                "The ensemble lies below half depth.",
                judge(sampled("half less effective depth", spread(2, 0.1)), above(0)),
                {},
            )
        ],
    )
    return {**made, "exhibits": exhibits}
