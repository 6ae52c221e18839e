"""What is asked of original and modified networks, rate by rate."""

from typing import Any

from theodolite.core import (
    Choice,
    Read,
    Region,
    Select,
    Test,
    below,
    counted,
    each,
    every,
    inside,
    our_margin,
)
from theodolite.core import difference as gap

from .image_config import RATES
from .image_rows import ACCURACY, BATCH_ACCURACY, LOST, STALLED, pair

ON_FIGURES_AXIS = Choice(
    what="speed is the mean over epochs of the logarithm of the training loss",
    why="the paper gives no number; its curves are drawn on a logarithmic axis, where "
    "this is the area between two of them",
)
LOST_COUNT = Choice(
    what="a run that diverged has chance's loss and accuracy from there on, and one "
    f"that ends above {STALLED:g} of chance's loss has stalled",
    why="the paper leaves diverged runs out, so that its means are of those that went "
    "well",
)
SAME_ACCURACY = our_margin(
    0.5, "half a point, twice the printed deviation over trials at the best rate"
)


def modified_less_original(rows: Select, **labels: Any) -> Read:
    """Read a paired difference: networks of one start, on the same batches."""
    at = f", rate {labels['rate']:g}" if "rate" in labels else ""
    name = f"{rows} of modified less original{at}"
    return gap(*pair(rows, **labels), name=name)


def faster(rows: Select, **labels: Any) -> Test:
    """The modified network is at the lower loss, on average over epochs."""
    return inside(modified_less_original(rows, **labels), below(0))


def faster_at_each_rate(rows: Select) -> Test:
    """The modified network is at the lower loss at every rate of the paper."""
    return each("rate", rows, lambda rate: faster(rows, rate=rate), least=len(RATES))


def same_accuracy(*rates: float, **labels: Any) -> Test:
    """Accuracies differ by less than a margin, whichever way they are tested."""
    return every(
        *(
            inside(modified_less_original(rows, rate=rate, **labels), SAME_ACCURACY)
            for rate in rates
            for rows in (ACCURACY, BATCH_ACCURACY)
        )
    )


def lost_share(model: float, region: Region, **labels: Any) -> Test:
    """The share of runs that diverged or stalled lies in a region."""
    at = f", rate {labels['rate']:g}" if "rate" in labels else ""
    name = f"share of {'modified' if model else 'original'} runs that are lost{at}"
    rows = LOST.at(added_identity=model, **labels)
    return inside(counted(rows, lambda row: row["value"] == 1, name=name), region)
