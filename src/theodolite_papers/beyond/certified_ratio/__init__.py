r"""Beyond theorem 4.7: is the certified ratio bounded below along training?

The theory wants $\|\nabla\ell\|^2/(\ell - \ell^*)$ bounded below, and proposition 4.6
gives a lower bound of it from the layers. Theorem 4.7 keeps that bound positive for
normalised branches beside skips, and not uniformly so. We train networks with skips and
norms, with one of them and with neither, and follow the bound beside the true ratio.

Beyond MacDonald et al. (2023), On skip connections and normalisation layers in deep
optimisation, propositions 4.6 and theorems 2.4, 4.7 and 5.1. Cost: ten seconds of
processor time at QUICK and a few minutes at PAPER.
"""

from theodolite.core import Alive, Rows
from theodolite.studies import Drawing, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    # Bounds are theory's, of networks that are trained: all rows are combined ones.
    measure=lambda config, cell: Rows(),
    paper_size=None,
    alive=Alive(by=("kind", "task", "trial"), loss="loss", over="step"),
    drawings=(
        Drawing(
            "levels",
            "The certified value over that of the network with skips and norms before "
            "the first step: of square loss the ratio, of cross-entropy the smallest "
            "eigenvalue of the tangent kernel. Geometric means over trials, with "
            "standard errors.",
            figure.table,
            figure.draw,
        ),
    ),
    departures=(
        "Data are normal vectors, fewer than their dimension, with labels at random; "
        "networks have a first layer and two blocks or pairs of layers of eight units.",
        "Norms are those of weights, as in theorem 4.7; for batch norm the bound of "
        "proposition 4.6 vanishes before the last norm.",
        "Networks without skips have matrices that keep the size of signals, since "
        "branches of norm below one alone would let it vanish.",
        "Networks without norms start at the matrices of those with norms.",
    ),
)
