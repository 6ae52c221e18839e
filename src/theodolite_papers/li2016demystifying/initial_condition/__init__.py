r"""Figure 4: condition numbers at initialisation against depth.

How badly conditioned is a linear network before the first step? The measure is
$|\lambda|_{\max}/|\lambda|_{(0.1)}$ of the Hessian of the square loss on whitened
digits. For 2-shortcut networks theory says it is a property of the data alone; for
1-shortcut and orthogonal networks it grows in proportion to depth; for Xavier networks
it grows exponentially, since the singular values of a product of random matrices spread
at a constant rate a layer. Networks are built and their Hessians measured by double
backward, on twenty samples that have the second moments of all: to a linear network
they are the same data. The deepest are computed from those moments.

Li et al. (2016), Demystifying ResNet, figure 4, section 5.1 and appendix B. Cost: about
a minute of processor time at QUICK and an hour at PAPER, most of it in the eigenvalues
at depths 64 and 96; a network of depth 96 takes about 3 GiB.
"""

from theodolite.studies import Committed, CommittedRun, Drawing, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    datasets=lambda config: (config.dataset,),
    drawings=(
        Drawing(
            "condition",
            "Means and standard deviations over networks of the decimal logarithm. "
            "Dashed: closed form at zero weights. Hollow: the percentile is below the "
            "rounding of the eigenvalues, so that the ratio is not known.",
            figure.table,
            figure.draw,
        ),
    ),
    committed=Committed(
        CommittedRun.of_study(__name__, free=("depths",)), ("quantity", "method")
    ),
    departures=(
        "The paper does not give depths: even numbers up to 96 are used; beyond depth "
        "16 (32 at the paper scale) the Hessian is computed from second moments, which "
        "gives the same matrix in less memory.",
        "Means are of the logarithm, since ratios of Xavier networks spread over "
        "decades within one depth.",
        "Signs and order of the principal components are fixed, which the paper leaves "
        "open; see the erratum on conventions.",
        "At the quick scale verdicts rest on a committed run at paper scale (60,000 "
        "digits, 10 networks a depth, depths up to 96); the run itself has 4 networks "
        "a depth up to 16, on 5,000 digits.",
    ),
)
