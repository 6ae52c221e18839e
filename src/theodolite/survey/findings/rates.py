"""Learning rates, noise and what the optimiser was given."""

import math

from theodolite.survey.findings.evidence import (
    Evidence,
    Figure,
    by_module,
    divided,
    figure_of,
    single,
)
from theodolite.survey.findings.rule import Rule
from theodolite.survey.records.whole_survey import Survey

# Rates over the largest stable one: above 1 a quadratic diverges, above 2 also the
# network that escapes to a flatter place (Lewkowycz et al., 2020).
STABLE = 1.0
CATAPULT = 2.0
# Below this the sharpest direction itself takes a thousand steps: ours.
SLOW = 1e-3
# Noise scale over batch size at which a step gains 1/(1 + 2) of what it could: ours.
NOISY = 2.0


def _too_large(survey: Survey) -> Evidence | None:
    ratio = single(survey, "rate_over_stable")
    if ratio is None:
        return None
    gone = ratio.value - ratio.error > CATAPULT
    return Evidence(
        figure=ratio,
        threshold=STABLE,
        above=True,
        severity="sick" if gone else "warning",
        told=_told(survey),
    )


def _too_small(survey: Survey) -> Evidence | None:
    ratio = single(survey, "rate_over_stable")
    if ratio is None:
        return None
    return Evidence(figure=ratio, threshold=SLOW, above=False, told=_told(survey))


def _told(survey: Survey) -> str:
    rate, ratio = single(survey, "rate_in_use"), single(survey, "rate_over_stable")
    if rate is None or ratio is None:
        return ""
    return f"The rate is {rate}; stable is up to {divided(rate, ratio)}."


def _cold(survey: Survey) -> Evidence | None:
    """Read the rate of adaptive steps where norms stand behind additions."""
    post = [b.name for b in survey.blocks if _post_norm(b.norms)]
    ratio = single(survey, "rate_over_stable")
    adaptive = str(survey.settings.get("optimiser", "")).lower().startswith("adam")
    if len(post) < 2 or ratio is None or not adaptive:
        return None
    return Evidence(
        figure=ratio,
        threshold=STABLE,
        above=True,
        where=tuple(post),
        told=_told(survey),
    )


def _post_norm(norms: tuple[str, ...]) -> bool:
    return any(norm.endswith(":post") for norm in norms)


def _forgotten(survey: Survey) -> Evidence | None:
    count = single(survey, "not_in_optimiser")
    if count is None:
        return None
    names = dict.fromkeys(name for name, _ in by_module(survey, "left_out"))
    return Evidence(figure=count, threshold=0.0, above=True, where=tuple(names))


def _noisy(survey: Survey) -> Evidence | None:
    """Read the noise scale; where no signal is seen, the least that it can be."""
    rows = survey.find("noise_scale_per_batch")
    size = survey.settings.get("batch_size")
    if len(rows) != 1 or not isinstance(size, int):
        return None
    figure = figure_of(rows[0])
    if math.isinf(figure.value):  # then |G|² is below about 2 tr Σ / N
        seen = rows[0].get("n_samples", 0) * rows[0].get("n_parts", 0)
        figure = Figure(seen / 2 / size)
    return Evidence(
        figure=figure,
        threshold=NOISY,
        above=True,
        told=f"It is {figure} batches of {size}.",
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
            "at rates above it 78 of 78 diverged (trained_norms); 2: Lewkowycz et al. "
            "(2020)"
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
        severity="sick",
        title="Norms behind additions at full rate from the first step",
        says=(
            "With norms behind the additions the last layers start with large "
            "gradients, and this adaptive optimiser's rate is above what is stable "
            "here. Such networks are started with a small rate that grows over the "
            "first steps, or built with norms at the heads of their branches."
        ),
        quantity="rate_over_stable",
        measures=("map", "rates"),
        source=(
            "Xiong et al. (2020), On layer normalization in the transformer "
            "architecture, section 3; 2(1 + β)/(1 − β) over the preconditioned λmax: "
            "Cohen et al. (2022)"
        ),
        confidence="measured",
        read=_cold,
    ),
    Rule(
        name="not-in-optimiser",
        severity="sick",
        title="The optimiser was not given all parameters",
        says=(
            "Some parameters take a gradient and are in none of the optimiser's "
            "groups, so that they never change. If they are meant to rest, say "
            "requires_grad_(False), which also saves their gradient."
        ),
        quantity="not_in_optimiser",
        measures=("optimiser",),
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
        read=_noisy,
    ),
)
