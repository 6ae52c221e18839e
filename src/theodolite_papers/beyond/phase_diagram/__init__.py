r"""Beyond the paper: which networks train, foretold at the first step.

Every run trains, stays where it started, or diverges. Gradient descent on the quadratic
model $L_0 + g^\top w + \frac12 w^\top H w$ of the start says which, with no training: a
run diverges where the model does, trains where the model falls by nine tenths of what
there is to gain, and stays otherwise.

Beyond Li et al. (2016), Demystifying ResNet, whose figures 7 and 8 fix the scale of the
initial weights and keep the best learning rate. Here depth, shortcut length, initial
scale and rate are all varied, and every run ends in one of three phases: it trains, it
stays where it was, or it diverges. The Hessian and gradient at the start foretell the
phase: gradient descent on the quadratic model of the loss. Cost: about 20 seconds of
processor time at QUICK, half an hour at PAPER.
"""

from theodolite.studies import Drawing, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    drawings=(
        Drawing(
            "phases",
            "Each tile is a learning rate and an initial scale (1 is Xavier); its "
            "colour is how most runs ended: trained, stayed, diverged. A dot marks "
            "tiles where the quadratic model at the start foretold another phase, and "
            "has the colour of that phase. Rows are shortcut lengths, columns depths.",
            figure.table,
            figure.draw,
        ),
    ),
    revision=3,
    departures=(
        "Not in the paper, which trains at one initial scale.",
        "250 of the 5,000 digits, 3 networks of depth 6 and 12, and 300 steps at "
        "QUICK; all digits, 10 networks up to depth 48 and 1,000 steps at PAPER.",
        "A ReLU network counts as trained at the same loss as a linear one: within a "
        "tenth of the way from its first loss to the least loss of a linear map.",
    ),
)
