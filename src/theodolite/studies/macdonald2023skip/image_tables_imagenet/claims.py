"""What figures 3 and 6 and table 3 say of networks on ImageNet."""

import math
from dataclasses import replace

from theodolite.core import (
    Choice,
    Claim,
    Known,
    Roads,
    Sampled,
    above,
    below,
    inside,
    known,
)
from theodolite.studies.macdonald2023skip.shared.image_claims import (
    LOST_COUNT,
    ON_FIGURES_AXIS,
    faster,
    lost_share,
    modified_less_original,
)
from theodolite.studies.macdonald2023skip.shared.image_config import MODIFIED
from theodolite.studies.macdonald2023skip.shared.image_rows import ACCURACY, SPEED
from theodolite.studies.macdonald2023skip.shared.printed_reads import between_models

BEST = 0.05  # where table 3 has the original network's least final loss
MOST = above(
    0.5, source="ours", why="the figure's caption says that it did not converge"
)


def _significance(roads: Roads) -> Known:
    """Read the p-value of a better modified network, whatever test was meant.

    Between one-sided with sample deviations and two-sided with population ones.
    """
    found = between_models("printed_accuracy", 3, BEST)(roads)
    assert isinstance(found, Sampled)
    smaller = found.stderr * math.sqrt((found.networks - 1) / found.networks)
    low = replace(found, slack=0.0, stderr=smaller).p_above(0.0)
    high = 2 * found.p_above(0.0)
    name = f"p of equal accuracies, table 3, rate {BEST:g}"
    return known(name, (low + high) / 2, (high - low) / 2)


CLAIMS = (
    Claim(
        name="faster-on-imagenet",
        place="Figure 3, section 6.3",
        statement=(
            "At the rate at which the original network does best, the modified one "
            "trains faster on ImageNet."
        ),
        test=faster(SPEED, rate=BEST, dataset="imagefolder"),
        rival="curves that cross or coincide, or a slower modified network",
        choices=(ON_FIGURES_AXIS, LOST_COUNT),
    ),
    Claim(
        name="better-on-imagenet",
        place="Section 6.3, table 3",
        statement="The modified network has the better accuracy on ImageNet.",
        test=inside(
            modified_less_original(ACCURACY, rate=BEST, dataset="imagefolder"), above(0)
        ),
        rival="equal accuracies, as on CIFAR",
        choices=(LOST_COUNT,),
    ),
    Claim(
        name="modified-fails-at-0.2",
        place="Figure 6",
        statement="The modified network does not converge on ImageNet at rate 0.2.",
        test=lost_share(MODIFIED, MOST, rate=0.2, dataset="imagefolder"),
        rival="runs that end like those at smaller rates",
        choices=(LOST_COUNT,),
    ),
    Claim(
        name="better-in-print",
        place="Section 6.3, table 3",
        statement=(
            "Of the printed numbers, the modified network's accuracy on ImageNet is "
            "significantly better."
        ),
        test=inside(
            _significance,
            below(0.05, source="ours", why="the usual level of significance"),
        ),
        rival="a difference that chance over three trials explains",
        choices=(
            Choice(
                what="Welch's test at rate 0.05, one- or two-sided, deviations of "
                "samples or of populations",
                why="the paper names no test, nor how it computed deviations",
            ),
        ),
    ),
)
