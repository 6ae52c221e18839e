"""Findings about skips and branches."""

import math

from ..records.whole_survey import Block, Survey
from .evidence import (
    Evidence,
    Figure,
    by_block,
    by_module,
    divided,
    fewest,
    largest,
    middle,
)
from .rule import Rule

# A branch below this share of its skip changes nothing that float32 training resolves;
# one above ten leaves the skip a hundredth of the energy: our choice.
ASLEEP = 1e-3
DROWNING = 10.0
# Branches with a smaller gradient, relative to the rest, do not move: our choice.
STUCK = 1e-4
# Below this remaining fraction of the skip path a network is no longer residual: a
# tenth, so that the gradient along it has a hundredth of the energy.
SKIP_LEFT = 0.1


def _gains(survey: Survey) -> list[tuple[Block, Figure]]:
    return [(b, f) for b, f in by_block(survey, "branch_gain") if b.skip]


def _asleep(survey: Survey) -> Evidence | None:
    gains = _gains(survey)
    if not gains:
        return None
    gain = middle([figure for _, figure in gains])
    names = tuple(b.name for b, f in gains if f.value < ASLEEP)
    return Evidence(figure=gain, threshold=ASLEEP, above=False, where=names)


def _drowning(survey: Survey) -> Evidence | None:
    gains = _gains(survey)
    if not gains:
        return None
    gain = middle([figure for _, figure in gains])
    names = tuple(b.name for b, f in gains if f.value > DROWNING)
    return Evidence(figure=gain, threshold=DROWNING, above=True, where=names)


def _stuck(survey: Survey) -> Evidence | None:
    """Compare the gradients of branches near zero with the largest other gradient."""
    names = [b.name for b, f in _gains(survey) if f.value < ASLEEP]
    gradients = by_module(survey, "gradient_rms")
    inside = [g for g in gradients if any(_within(g[0], name) for name in names)]
    outside = [g for g in gradients if g not in inside]
    best, other = largest(inside), largest(outside)
    if best is None or other is None:
        return None
    return Evidence(
        figure=divided(best[1], other[1]),
        threshold=STUCK,
        above=False,
        where=tuple(names),
    )


def _damped(survey: Survey) -> Evidence | None:
    r"""Return which fraction of the skip is left after all post-addition norms.

    A norm divides $x + f$ by its size, $\sqrt{1 + g^2}$ times that of $x$ where branch
    and skip are uncorrelated, $g$ the branch's gain.
    """
    post = [
        (b, f)
        for b, f in _gains(survey)
        if any(norm.endswith(":post") for norm in b.norms)
    ]
    if not post:
        return None
    logs = [-0.5 * math.log1p(f.value**2) for _, f in post]
    slopes = [f.value * f.error / (1 + f.value**2) for _, f in post]
    left = math.exp(sum(logs))
    return Evidence(
        figure=Figure(left, left * math.hypot(*slopes), fewest(*(f for _, f in post))),
        threshold=SKIP_LEFT,
        above=False,
        where=tuple(b.name for b, _ in post),
        detail=f"{len(post)} norms stand behind additions here.",
    )


def _within(module: str, block: str) -> bool:
    path = block.split("#")[0]
    return module == path or module.startswith(f"{path}.")


RULES = (
    Rule(
        name="norm-after-addition",
        severity="warning",
        title="Norms behind the additions wear the skips down",
        says=(
            "A norm behind an addition divides the skip as well as the branch, once a "
            "block, so that little of the first block reaches the end unchanged: the "
            "network is no longer residual. With the norm at the head of the branch "
            "the skip stays whole."
        ),
        quantity="share of the signal along all skips",
        measures=("map",),
        source=(
            "Xiong et al. (2020), On layer normalization in the transformer "
            "architecture; product of 1/sqrt(1 + gain²) over blocks, exact where "
            "branches and skips are uncorrelated; the level of 0.1 is ours"
        ),
        confidence="proved",
        read=_damped,
    ),
    Rule(
        name="branches-stuck-at-zero",
        severity="note",
        title="Branches start at zero and get hardly any gradient",
        says=(
            "All layers of these branches are so near zero that none of them gets a "
            "gradient worth the name: with n layers it is the product of the n − 1 "
            "others. From three layers on the curvature vanishes as well. That is "
            "sound where only the last factor of a branch is small (layer scale, a "
            "norm that starts at zero): the rest follows once it has grown."
        ),
        quantity="gradient_rms of branches over that of the rest",
        measures=("map", "signal"),
        source=(
            "Li et al. (2016), lemma 3 and theorem 2: at zero all derivatives below "
            "the n-th order vanish; the level of 0.0001 is ours"
        ),
        study="li2016demystifying/vanishing_partials",
        confidence="proved",
        read=_stuck,
    ),
    Rule(
        name="branches-drown-skips",
        severity="warning",
        title="Branches drown their skips",
        says=(
            "Half of the branches or more are over ten times as large as what they are "
            "added to, so that a skip carries under a hundredth of the energy. The "
            "network behaves like a plain one of the same depth."
        ),
        quantity="median branch_gain",
        measures=("map",),
        source="energy of uncorrelated terms, 1/(1 + gain²); the level of 10 is ours",
        study="littwin2016loss/measured_ensemble",
        confidence="proved",
        read=_drowning,
    ),
    Rule(
        name="branches-asleep",
        severity="note",
        title="Branches hardly add anything",
        says=(
            "Half of the branches or more are under a thousandth of what they are "
            "added to. At the start that is a known and sound choice (zero-started "
            "branches, layer scale); in a trained network these blocks do nothing."
        ),
        quantity="median branch_gain",
        measures=("map",),
        source="the level of 0.001 is ours",
        study="littwin2016loss/measured_ensemble",
        confidence="rule of thumb",
        read=_asleep,
    ),
)
