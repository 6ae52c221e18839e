"""Findings about skips and branches."""

import math
import operator

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
from .rule import rule

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


def _median_gain(survey: Survey, threshold: float, *, above: bool) -> Evidence | None:
    if not (gains := _gains(survey)):
        return None
    beyond = operator.gt if above else operator.lt
    return Evidence(
        figure=middle([figure for _, figure in gains]),
        threshold=threshold,
        above=above,
        where=tuple(b.name for b, f in gains if beyond(f.value, threshold)),
    )


@rule(
    "norm-after-addition",
    "warning",
    "Norms after the additions shrink the skips",
    quantity="share of the signal along all skips",
    source="Xiong et al. (2020), On layer normalization in the transformer "
    "architecture; product of 1/sqrt(1 + gain²) over blocks, exact where branches and "
    "skips are uncorrelated; the level of 0.1 is ours",
    confidence="proved",
)
def norm_after_addition(survey: Survey) -> Evidence | None:
    r"""A norm after an addition divides the skip as well as the branch, once per block,
    so that little of the first block reaches the end unchanged: the network is no
    longer residual. With the norm at the start of the branch the skip keeps its size.
    """
    # The norm divides x + f by its size, sqrt(1 + g²) times that of x where branch and
    # skip are uncorrelated, g the branch's gain.
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
        detail=f"{len(post)} norms stand after additions here.",
    )


@rule(
    "branches-stuck-at-zero",
    "note",
    "Branches start at zero and get hardly any gradient",
    quantity="gradient_rms of branches over that of the rest",
    source="Li et al. (2016), lemma 3 and theorem 2: at zero all derivatives below the "
    "n-th order vanish; the level of 0.0001 is ours",
    study="li2016demystifying/vanishing_partials",
    confidence="proved",
)
def branches_stuck_at_zero(survey: Survey) -> Evidence | None:
    """All layers of these branches are nearly zero. The gradient of a layer is a
    product of the others, so that none gets any to speak of; from three layers on the
    curvature vanishes as well. It is sound where only the last factor of a branch is
    small (LayerScale, a norm that starts at zero): the rest follows once it has grown.
    """
    names = [b.name for b, f in _gains(survey) if f.value < ASLEEP]
    paths = [name.split("#")[0] for name in names]
    gradients = by_module(survey, "gradient_rms")
    inside = [
        g
        for g in gradients
        if any(g[0] == p or g[0].startswith(f"{p}.") for p in paths)
    ]
    best = largest(inside)
    other = largest(g for g in gradients if g not in inside)
    if best is None or other is None:
        return None
    return Evidence(
        figure=divided(best[1], other[1]),
        threshold=STUCK,
        above=False,
        where=tuple(names),
    )


@rule(
    "branches-drown-skips",
    "warning",
    "Branches are far larger than their skips",
    quantity="median branch_gain",
    source="energy of uncorrelated terms, 1/(1 + gain²); the level of 10 is ours",
    study="littwin2016loss/measured_ensemble",
    confidence="proved",
)
def branches_drown_skips(survey: Survey) -> Evidence | None:
    """Half of the branches or more are over ten times as large as what they are added
    to, so that a skip carries less than a hundredth of the energy. The network behaves
    like a plain one of the same depth.
    """
    return _median_gain(survey, DROWNING, above=True)


@rule(
    "branches-asleep",
    "note",
    "Branches hardly add anything",
    quantity="median branch_gain",
    source="the level of 0.001 is ours",
    study="littwin2016loss/measured_ensemble",
    confidence="rule of thumb",
)
def branches_asleep(survey: Survey) -> Evidence | None:
    """Half of the branches or more are less than a thousandth of what they are added
    to. At the start that is a known and sound choice (branches that start at zero,
    LayerScale); in a trained network these blocks do nothing.
    """
    return _median_gain(survey, ASLEEP, above=False)
