r"""Appendices G and H: layers and features where training rests.

Is every layer, at rest, the gradient of each sample's output, $V_k f_n = \partial
f_n/\partial V_k$? Normalised linear and ReLU networks are trained on two digits until
they rest, and what is missing is measured layer by layer and sample by sample; so are
the matrices that the paper writes down as solutions, a recurrent network, and the
collapse of features.

Poggio & Liao (2020), Generalization in deep network classifiers trained with the square
loss. The claim in our words: where training comes to rest, every layer equals the
gradient of each sample's output up to a factor, from which neural collapse and the form
of the weight matrices follow. Cost: seconds at QUICK, minutes at PAPER.
"""

from theodolite.studies import Drawing, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    revision=2,
    datasets=lambda config: ("digits",),
    splits=("train", "test"),
    drawings=(
        Drawing(
            "layer_gaps",
            "What is missing of each layer at rest, relative to it. Left: of the "
            "weighted sum over samples. Right: of each sample alone, root mean square; "
            "no first layer can be below the dotted line.",
            figure.table,
            figure.draw,
        ),
    ),
    departures=(
        "Digits of two classes, averaged to 16 pixels, stand for CIFAR-10, so that "
        "all layers are square as appendix H assumes and networks come to rest.",
        "Layers are normalised by their Frobenius norm and only $\\rho$ decays, as in "
        "equation 4, in place of batch normalisation.",
        "The network of appendix G has two outputs of opposite weights; one is "
        "trained, which is the same.",
    ),
)
