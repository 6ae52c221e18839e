r"""Theorem 5.1: does gradient descent reach the infimum from any initialisation?

MacDonald et al. (2023), On skip connections and normalisation layers in deep
optimisation, section 5 and the proof in appendix B, Eqs 13 and 36–45. The claim in our
words: normalised residual networks on linearly independent data are trained to a global
minimum from wherever they start. What holds under which hypotheses is in
``docs/theorem_5_1.md``.

Departures: see ``STUDY.departures``. Cost: half a minute at QUICK.
"""

from theodolite.studies import Drawing, Study

from .claims import CLAIMS
from .combine import combine
from .config import PRESETS, cells
from .figure import draw
from .measure import measure
from .predict import predict
from .tables import compare, table

STUDY = Study(
    title="Theorem 5.1: does descent reach the infimum from anywhere?",
    summary=(
        "Normalised residual networks $f_1 = \\mathrm{en}(W)X$, $f_l = Z + g(Z)$ are "
        "descended at their certified step $1/\\beta$ and at multiples of it, from "
        "tiny, normal, huge and adversarial starts; limits at infinity are found in "
        "coordinates that end there, and the proof is read line by line."
    ),
    presets=PRESETS,
    cells=cells,
    predict=predict,
    measure=measure,
    combine=combine,
    compare=compare,
    claims=CLAIMS,
    drawings=(
        Drawing(
            "above_the_infimum",
            "Loss above the infimum against steps, in units of the certified one; "
            "medians over networks, bands over their middle half. Of two layers the "
            "infimum is the best limit found, and later steps grow. Middle: limits of "
            "all normal starts of two layers, sorted. Right: the square cost from "
            "where first-layer weights stay in a ball.",
            table,
            draw,
        ),
    ),
    departures=(
        "'Converges to a global minimum' is read as: the loss tends to its infimum "
        "over all parameters, since under cross-entropy no parameters attain it.",
        "Costs are assumed to have Lipschitz gradients on bounded sets, which the "
        "theorem does not say and its step needs.",
    ),
)
