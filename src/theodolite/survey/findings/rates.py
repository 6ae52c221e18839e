"""Learning rates, gradient noise, and the parameters of the optimiser."""

import math
from collections.abc import Mapping, Sequence

from ..records.block import Block
from ..records.whole_survey import Survey
from .evidence import Evidence, Figure, by_module, divided, fewest, figure_of, single
from .rule import Rule

# Rates over the largest stable one: above 1 a quadratic diverges, above 2 also the
# network that escapes to a flatter place (Lewkowycz et al., 2020).
STABLE = 1.0
CATAPULT = 2.0
# Gradient of the last blocks, relative to that of a pre-norm network: our choice.
UNEVEN = 2.0
LEAST_USE = 0.05
# Below this even the sharpest direction takes a thousand steps: our choice.
SLOW = 1e-3
# At this noise scale over batch size, noise cuts a step's gain to 1/3: our choice.
NOISY = 2.0


def _ratio(survey: Survey) -> Figure | None:
    """Return the learning rate over the stable one, if the stable one is known.

    An adaptive optimiser that has made no step yet has no scales; the scales from the
    first gradient change within a few steps, so they do not predict later steps. A
    ratio whose interval contains zero is not resolved.
    """
    rows = survey.find("rate_over_stable")
    if len(rows) != 1 or "squared gradient" in str(rows[0].get("preconditioner")):
        return None
    ratio = figure_of(rows[0])
    return ratio if ratio.value > ratio.error else None


def _too_large(survey: Survey) -> Evidence | None:
    ratio = _ratio(survey)
    if ratio is None:
        return None
    gone = ratio.value - ratio.error > CATAPULT
    return Evidence(
        figure=ratio,
        threshold=STABLE,
        above=True,
        severity="sick" if gone else "warning",
        detail=_rate_sentence(survey),
    )


def _too_small(survey: Survey) -> Evidence | None:
    ratio = _ratio(survey)
    if ratio is None:
        return None
    return Evidence(
        figure=ratio, threshold=SLOW, above=False, detail=_rate_sentence(survey)
    )


def _fits(survey: Survey) -> Evidence | None:
    ratio = _ratio(survey)
    if ratio is None or ratio.value - ratio.error < LEAST_USE:
        return None
    return Evidence(figure=ratio, threshold=STABLE, above=False)


def _rate_sentence(survey: Survey) -> str:
    rate, ratio = single(survey, "rate_in_use"), single(survey, "rate_over_stable")
    if rate is None or ratio is None:
        return ""
    stable = divided(rate, ratio)
    if several_rates(survey):
        return (
            f"The largest rate of a group is {rate}; with the others in proportion "
            f"stable is up to {stable}."
        )
    return f"The rate is {rate}; stable is up to {stable}."


def several_rates(survey: Survey) -> bool:
    """Return whether the optimiser's groups have different learning rates."""
    return any(row.get("n_rates", 1) > 1 for row in survey.find("rate_in_use"))


def _cold(survey: Survey) -> Evidence | None:
    r"""Compare gradients of the last and the first blocks of a post-norm network.

    With pre-norm in $L$ branches the last gradient would be $1/\sqrt L$ of the first,
    since the stream grows like $\sqrt L$ (Xiong et al., theorem 1). The rule does not
    apply to an optimiser that is warming up (its rate is below the initial one), nor
    to one that has made steps.
    """
    post = [b for b in survey.blocks if _post_norm(b.norms)]
    facts = survey.settings.get("optimizer_settings")
    adaptive = str(survey.settings.get("optimizer", "")).startswith("Adam")
    if len(post) < 4 or not adaptive or not isinstance(facts, Mapping):
        return None
    made = single(survey, "steps_made")
    warming = float(facts.get("initial_lr", 0.0)) > float(facts.get("lr", 0.0))
    if warming or made is None or made.value > 0:
        return None
    few = max(len(post) // 4, 1)
    first, last = _size(survey, post[:few]), _size(survey, post[-few:])
    if first is None or last is None:
        return None
    ratio, root = divided(last, first), math.sqrt(len(post))
    return Evidence(
        figure=Figure(root * ratio.value, root * ratio.error, ratio.samples),
        threshold=UNEVEN,
        above=True,
        where=tuple(b.name for b in post),
    )


def _size(survey: Survey, blocks: Sequence[Block]) -> Figure | None:
    """Return the root mean square of the gradients of some blocks."""
    names = tuple(f"{b.name.split('#')[0]}." for b in blocks)
    sizes = [
        f for n, f in by_module(survey, "gradient_rms") if f"{n}.".startswith(names)
    ]
    if not sizes:
        return None
    size = math.sqrt(sum(f.value**2 for f in sizes) / len(sizes))
    spread = math.hypot(*(f.value * f.error for f in sizes)) / len(sizes)
    return Figure(size, spread / size if size else 0.0, fewest(*sizes))


def _post_norm(norms: tuple[str, ...]) -> bool:
    return any(norm.endswith(":post") for norm in norms)


def _forgotten(survey: Survey) -> Evidence | None:
    count = single(survey, "not_in_optimizer")
    if count is None:
        return None
    names = dict.fromkeys(name for name, _ in by_module(survey, "left_out"))
    return Evidence(figure=count, threshold=0.0, above=True, where=tuple(names))


def _noisy(survey: Survey) -> Evidence | None:
    """Return the noise scale, or its lower bound if the signal is not resolved."""
    rows = survey.find("noise_scale_per_batch")
    size = survey.settings.get("batch_size")
    if len(rows) != 1 or not isinstance(size, int):
        return None
    figure = figure_of(rows[0])
    if not math.isfinite(figure.error + figure.value):  # |G|² < about 2 tr Σ / N
        seen = rows[0].get("n_samples", 0) * rows[0].get("n_parts", 0)
        figure = Figure(seen / 2 / size, 0.0, figure.samples)
    return Evidence(
        figure=figure,
        threshold=NOISY,
        above=True,
        detail=f"In batches of {size} it is {figure}.",
    )


RULES = (
    Rule(
        name="rate-too-large",
        severity="warning",
        title="The learning rate is above what this landscape bears",
        says=(
            "In the steepest direction every step overshoots by more than it corrects. "
            "The loss rises at first; past twice the stable rate it seldom comes back, "
            "below that the network may escape to a flatter place."
        ),
        quantity="rate_over_stable",
        measures=("rates",),
        source=(
            "descent on a quadratic diverges above 2/λmax; of networks with batch norm "
            "at rates above it 108 of 108 diverged (trained_norms); 2: Lewkowycz et "
            "al. (2020)"
        ),
        study="poggio2020square/trained_norms",
        confidence="measured",
        read=_too_large,
    ),
    Rule(
        name="rate-too-small",
        severity="warning",
        title="The learning rate is far below what this landscape bears",
        says=(
            "At this rate even the steepest direction takes a thousand steps, and all "
            "others longer. Unless this is the end of a schedule, time is wasted."
        ),
        quantity="rate_over_stable",
        measures=("rates",),
        source="descent on a quadratic; the level of 0.001 is ours",
        confidence="rule of thumb",
        read=_too_small,
    ),
    Rule(
        name="warm-up-missing",
        severity="note",
        title="Norms behind additions at full rate from the first step",
        says=(
            "With norms behind the additions the gradients of the last blocks do not "
            "shrink with depth, and an adaptive optimiser at full rate moves all "
            "blocks at once. Such networks are started with a small rate that grows "
            "over the first steps, or built with norms at the heads of their branches."
        ),
        quantity="gradient_rms of the last blocks over the first, times root of depth",
        measures=("map", "signal", "optimizer"),
        source=(
            "Xiong et al. (2020), On layer normalization in the transformer "
            "architecture, theorem 1: with norms at the heads it would be about 1; "
            "the factor 2 is ours"
        ),
        confidence="rule of thumb",
        read=_cold,
    ),
    Rule(
        name="not-in-optimizer",
        severity="sick",
        title="The optimiser was not given all parameters",
        says=(
            "Some parameters take a gradient and are in none of the optimiser's "
            "groups, so that they never change. If they are meant to rest, say "
            "requires_grad_(False), which also saves their gradient."
        ),
        quantity="not_in_optimizer",
        measures=("optimizer",),
        source="counted",
        confidence="proved",
        read=_forgotten,
    ),
    Rule(
        name="gradient-is-noise",
        severity="note",
        title="The gradient of a batch is mostly noise",
        says=(
            "Between batches of this size the gradient differs more than its mean is "
            "long, so that a step gains less than a third of what it could. A larger "
            "batch would buy almost proportionally larger steps."
        ),
        quantity="noise_scale_per_batch",
        measures=("rates",),
        source=(
            "McCandlish et al. (2018), An empirical model of large-batch training, "
            "Eq 2.7: a step gains 1/(1 + B/b) of what it could; the factor 2 is ours"
        ),
        confidence="rule of thumb",
        about="labels",
        read=_noisy,
    ),
    Rule(
        name="rate-fits",
        severity="good",
        title="The learning rate suits this landscape",
        says="It is below what is stable here, and not far below.",
        quantity="rate_over_stable",
        measures=("rates",),
        source="descent on a quadratic is stable below 2/λmax; a twentieth is ours",
        confidence="proved",
        read=_fits,
    ),
)
