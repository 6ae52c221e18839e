r"""Theorem 5.1: does descent reach the infimum from anywhere?

Normalised residual networks $f_1 = \mathrm{en}(W)X$, $f_l = Z + g(Z)$ are descended at
their certified step $1/\beta$ and at multiples of it, from tiny, normal, huge and
adversarial starts; limits at infinity are found in coordinates that end there, and the
proof is read line by line.

MacDonald et al. (2023), On skip connections and normalisation layers in deep
optimisation, section 5 and the proof in appendix B, Eqs 13 and 36–45. What holds under
which hypotheses is in ``docs/theorem_5_1.md``. Cost: half a minute at QUICK.
"""

from theodolite.studies import Drawing, gather_study

from . import figure

STUDY = gather_study(
    __name__,
    # A theorem: nothing is trained in the paper.
    paper_size={"n_seeds": None, "steps": None, "samples": None},
    drawings=(
        Drawing(
            "above_the_infimum",
            "Loss above the infimum against steps, in units of the certified one; "
            "medians over networks, bands over their middle half. Of two layers the "
            "infimum is the best limit found, and later steps grow. Middle: limits of "
            "all normal starts of two layers, sorted. Right: the square cost from "
            "where first-layer weights stay in a ball.",
            figure.table,
            figure.draw,
        ),
    ),
    departures=(
        "'Converges to a global minimum' is read as: the loss tends to its infimum "
        "over all parameters, since under cross-entropy no parameters attain it.",
        "Costs are assumed to have Lipschitz gradients on bounded sets, which the "
        "theorem does not say and its step needs.",
    ),
)
