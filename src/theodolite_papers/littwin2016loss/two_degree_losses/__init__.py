r"""Theorems 3 and 4: the driving force behind growing scales.

A network with one skip over $p - m$ layers has a loss of two homogeneous parts, $L_m +
L_p$. If a scale $\lambda_l$ or the weights' size $C$ is at rest, which way does it go
after one step of the weights? Closed forms meet autodiff on random losses brought to
such points.

Littwin & Wolf (2016), The Loss Surface of Residual Networks, section 4.2, equations 21
to 25 and 38 to 45. The claim in our words: where the derivative by a scale vanishes, a
step of the weights makes the scale grow, for layers without a skip always, for others
where the deeper paths' gradient is the longer one. Cost: seconds at every scale.
"""

from theodolite.studies import Drawing, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    paper_size=None,  # theorems
    drawings=(
        Drawing(
            "norm_force",
            "Force on the size $C$ of the weights where it is at rest, against the "
            "ratio of the gradients; above zero the weights grow. "
            "Dashed: the least force over all angles, "
            "$(1-s)(m-ps)/(m+ps^2)$ at ratio $s$.",
            figure.table,
            figure.draw,
        ),
    ),
    departures=(
        "Theorems 3 and 4 are read with parts homogeneous in $w$, without the "
        "normalisation $z$ of the mixture, as their proofs use them.",
        "Derivatives by the step's length are taken at length zero, by autodiff, in "
        "place of the paper's first-order expansions.",
    ),
)
