r"""Whether these samples can be learned: inputs, tangent kernel, margins."""

from dataclasses import replace

from theodolite.core import Row

from ..records.outcomes import on_samples
from ..records.whole_survey import Survey
from .evidence import Evidence, Figure, by_module, divided, figure_of, single
from .rule import Rule

# Relative spacing of numbers of the common types.
SPACING = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10}
SPACING["bfloat16"] = 2.0**-7
# Largest share of misclassified samples in a batch that counts as fitted: our choice.
FIT = 0.1
# Absolute margin of the worst sample over the median one: our choice.
AGAINST = 1.0
# From this share on, dead units are named as the reason: our choice.
MANY_DEAD = 0.5


def _spacing(survey: Survey) -> float | None:
    return SPACING.get(str(survey.settings.get("dtype")))


def _uneven(survey: Survey) -> Evidence | None:
    condition, spacing = single(survey, "input_condition"), _spacing(survey)
    if condition is None or spacing is None:
        return None
    return Evidence(figure=condition, threshold=1 / spacing, above=True)


def _tied(survey: Survey) -> Evidence | None:
    """Compare the kernel's smallest eigenvalue over its largest with rounding errors.

    If outputs sum to one, or depend on fewer features than there are outputs, they are
    tied by construction, so nothing is returned.
    """
    rows, spacing = survey.find("tangent_smallest"), _spacing(survey)
    largest = single(survey, "tangent_largest")
    if len(rows) != 1 or spacing is None or largest is None or largest.value <= 0:
        return None
    if rows[0].get("probabilities") or rows[0].get("narrow"):
        return None
    ratio = divided(figure_of(rows[0]), largest)
    return Evidence(
        figure=replace(ratio, value=abs(ratio.value)),
        threshold=int(rows[0].get("n_rows", 1)) * spacing,
        above=False,
        detail=_reason(survey, rows[0]),
    )


def _reason(survey: Survey, row: Row) -> str:
    """Return a sentence that names the cause of tied outputs."""
    rows, trained = int(row.get("n_rows", 0)), int(row.get("n_trained", 0))
    if rows > trained:
        return (
            f"Here {rows} outputs were looked at and {trained} numbers are trained, "
            "which cannot move all of them."
        )
    if repeated := int(row.get("n_repeated", 0)):
        return (
            f"Here {repeated} of {row.get('n_samples')} samples repeat another one, "
            "number for number."
        )
    dead = [f"{n} ({f})" for n, f in by_module(survey, "dead_share") if _dead(f)]
    if dead:
        return f"Here units are dead: {', '.join(dead)}."
    return (
        "Here it is neither for too few parameters, nor for equal samples, nor for "
        "dead units: what tells samples apart is lost on the way through the network."
    )


def _dead(share: Figure) -> bool:
    return share.value - share.error >= MANY_DEAD


def _against(survey: Survey) -> Evidence | None:
    """Return the worst margin over the median one, if the batch is nearly fitted."""
    wrong = single(survey, "error_rate")
    worst, usual = (single(survey, "margin", share=share) for share in (0.0, 0.5))
    if wrong is None or worst is None or usual is None:
        return None
    if not wrong.value <= FIT or usual.value <= usual.error:
        return None
    ratio = divided(replace(worst, value=-worst.value), usual)
    return Evidence(
        figure=ratio,
        threshold=AGAINST,
        above=True,
        detail=(
            f"Here {100 * wrong.value:.2g} % of the samples are on the wrong side"
            f"{on_samples(wrong.samples).replace(' on', ', counted on', 1)}."
        ),
    )


RULES = (
    Rule(
        name="inputs-ill-conditioned",
        severity="warning",
        title="Input features differ too much in size to be learned together",
        says=(
            "The curvature of the first layer's weights grows with the variance of "
            "what they read. At a rate that suits the largest feature a step along a "
            "usual one is smaller than the spacing of the numbers that hold its "
            "weights, so that plain descent leaves them where they are. Give every "
            "feature mean 0 and variance 1."
        ),
        quantity="input_condition",
        measures=("signal",),
        source=(
            "LeCun et al. (1998), Efficient backprop, sections 4.3 and 5: the Hessian "
            "of a linear layer is the inputs' second moments; one over the spacing of "
            "the model's numbers"
        ),
        confidence="rule of thumb",
        about="inputs",
        read=_uneven,
    ),
    Rule(
        name="outputs-tied",
        severity="note",
        title="Some outputs of these samples cannot be moved apart",
        says=(
            "What a small change of the parameters can do to the outputs of the "
            "samples is their tangent kernel, and it is singular to rounding: along "
            "some combination of their outputs no step has any effect, and labels that "
            "differ there cannot be fitted from here."
        ),
        quantity="tangent_smallest over tangent_largest",
        measures=("tangent", "units"),
        source=(
            "Du et al. (2019), Gradient descent provably optimizes over-parameterized "
            "neural networks, theorem 3.2: the loss falls at the rate of the kernel's "
            "smallest eigenvalue; rounding of a sum over its rows"
        ),
        confidence="proved",
        about="inputs",
        read=_tied,
    ),
    Rule(
        name="labels-against-the-rest",
        severity="note",
        title="A few samples are as surely wrong as the others are right",
        says=(
            "Nearly all samples are on the right side, and the worst one is further on "
            "the wrong side than the usual one on the right. Such samples are often "
            "labelled wrongly; look at them before training goes on to fit them."
        ),
        quantity="worst margin over the median margin, in magnitude",
        measures=("classifier",),
        source=(
            "Pleiss et al. (2020), Identifying mislabeled data using the area under "
            "the margin ranking, section 3: margins of mislabelled samples are "
            "negative; the levels of 10 % and 1 are ours"
        ),
        confidence="rule of thumb",
        about="labels",
        read=_against,
    ),
)
