r"""Eq 16 against real networks: the ensemble of their paths.

With its gates as a forward pass sets them, a residual network is a sum over paths.
Random networks of several widths and depths are run once, and the exact contribution of
all paths of each length is carried through them. Eq 16 foretells how their energies are
spread over lengths: as the square of a binomial with $\beta = \rho n C/\sqrt{\Lambda}$.
Branches are deleted too, from the real network and from its frozen paths.

Littwin & Wolf (2016), The Loss Surface of Residual Networks, Eq 16, theorem 2, the end
of section 3 and item 1 of section 4. The claim in our words: at the start, energy lies
with paths of less than half the depth, in the narrow band of a squared binomial. Cost:
ten seconds at QUICK.
"""

from theodolite.studies import Drawing, Exhibit, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    paper_size=None,  # the paper measures no network
    exhibits=(Exhibit("path_ensembles", figure.exhibit),),
    drawings=(
        Drawing(
            "ensemble",
            "Share of energy by path length in the deepest networks: means and "
            "standard deviations over networks. Dashed: Eq 16 at the foretold "
            "$\\beta$.",
            figure.table,
            figure.draw,
        ),
        Drawing(
            "unravelled",
            "Every path through a random network of five layers, as wide as its share "
            "of energy. The first layer has no skip, and is on all of them.",
            figure.single_paths,
            figure.draw_paths,
        ),
    ),
    departures=(
        "The paper measures no ensemble: widths, depths and the number of inputs are "
        "ours. Weights are normal, scaled so that their root mean square is $C$ "
        "exactly, all different or $n$ that all layers share; Eq 16 is taken at "
        "$\\Lambda = n$ and $\\rho = 1/2$.",
        "Gates are those of the forward pass, neither coins nor independent.",
        "The gradient is that of the sum of outputs by the input of the first skip.",
    ),
)
