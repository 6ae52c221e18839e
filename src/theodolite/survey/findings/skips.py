"""Findings about skips and branches."""

import math

from ..records.block import Block
from ..records.whole_survey import Survey
from .evidence import (
    Evidence,
    Figure,
    by_block,
    by_module,
    divided,
    fewest,
    figure_of,
    largest,
    middle,
    single,
    smallest,
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
# Least share of branches that paths take at the end of training in
# littwin2016loss/depth_along_training (cifar10, depth 56, no norm).
SHALLOW = 0.1
# Directions with a smaller gain, relative to the block's RMS, count as lost.
LOST = 0.1


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


def _lost(survey: Survey) -> Evidence | None:
    """Return the tenth percentile of each projecting block's singular values."""
    lost: list[tuple[str, Figure]] = []
    for block in survey.blocks:
        if block.skip == "projection":
            low = survey.find("singular_value", block=block.name, share=0.1)
            top = survey.find("singular_value", block=block.name, share=0.5)
            if len(low) == len(top) == 1:
                lost.append((block.name, divided(figure_of(low[0]), figure_of(top[0]))))
    worst = smallest(lost)
    if worst is None:
        return None
    names = tuple(name for name, f in lost if f.value < LOST)
    return Evidence(figure=worst[1], threshold=LOST, above=False, where=names)


def _shallow(survey: Survey) -> Evidence | None:
    depth = single(survey, "effective_depth")
    branches = single(survey, "n_branches")
    if depth is None or branches is None or branches.value < 2:
        return None
    return Evidence(
        figure=divided(depth, branches),
        threshold=SHALLOW,
        above=False,
        detail=f"Paths take {depth} of {branches} branches on average.",
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
        name="projection-loses-directions",
        severity="note",
        title="A projection on a skip loses directions",
        says=(
            "Where the shape changes, the skip is a random projection instead of the "
            "identity, and the block hands on a tenth of all directions much weaker "
            "than the others. Adding an average or Haar map makes it I + A. Our own "
            "measurements say that this shifts the spectrum but not that it trains "
            "faster: try before you adopt it."
        ),
        quantity="tenth percentile of singular values over the median",
        measures=("map", "jacobian"),
        source=(
            "MacDonald et al. (2023), Eqs 14 and 15: singular values of I + A; "
            "measured: the gain in speed is not borne out (why_it_helps FAILS); the "
            "level of 0.1 is ours"
        ),
        study="beyond/why_it_helps",
        confidence="measured",
        read=_lost,
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
    Rule(
        name="shallow-ensemble",
        severity="note",
        title="The network is shallower than it looks",
        says=(
            "Seen as a sum over paths, nearly all of the output comes from paths that "
            "skip nearly all branches. It computes like a much shallower network, and "
            "deeper would cost more without being deeper."
        ),
        quantity="effective_depth over n_branches",
        measures=("map", "paths"),
        source=(
            "Littwin & Wolf (2016), section 4; the level is the least share that we "
            "measured at the end of training (0.103: CIFAR-10, depth 56, no norm)"
        ),
        study="littwin2016loss/depth_along_training",
        confidence="measured",
        read=_shallow,
    ),
)
