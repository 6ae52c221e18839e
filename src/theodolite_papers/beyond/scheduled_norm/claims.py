"""Claims: do norms on a schedule lead to good solutions from any start?"""

from collections.abc import Callable
from functools import partial
from typing import Any

from theodolite.core import (
    Choice,
    Claim,
    Number,
    PredictedAndMeasured,
    Region,
    Select,
    Test,
    above,
    below,
    beyond,
    difference,
    each,
    inside,
    mean,
    measured,
    ordered,
)

from .config import METHODS, TASKS
from .figure import chosen

NO_WORSE = below(0.01, source="ours", why="one held-out sample in a hundred")
GRIDS = Choice(
    what="each split chooses a method's rate and its decay or norm, of six",
    why="by its error on samples that are neither trained on nor held out; the grids "
    "lie about what did well on two splits beforehand",
)
SPLITS = Choice(
    what="networks are splits of one dataset",
    why="each draws its samples anew, so that samples recur",
)
STARTS = Choice(
    what="two starts, of layers of norm 0.1 and 5, with directions of their own",
    why="the smallest and largest norms of figures 1 to 5",
)
ours = partial(
    beyond, place="Section 6.1, first remark", choices=(GRIDS, SPLITS, STARTS)
)
MANNERS = {
    "grown": "with batch norm, directions on spheres and a norm that grows",
    "bare": "without batch norm, directions on spheres and a norm that grows",
}


def _of(quantity: str, method: str, task: str) -> Select:
    return measured(quantity, method=method, task=task).out_of(chosen)


def _tasks(make: Callable[[Any], Test]) -> Test:
    rows = measured("held_error").called("tasks")
    return each("task", rows, make, least=len(TASKS))


def _less(
    quantity: str, low: str, high: str, *, by: Region | None = None, log: bool = False
) -> Test:
    """Judge whether the first method has less of a quantity on every task."""
    return _tasks(
        lambda task: ordered(
            _of(quantity, low, task), _of(quantity, high, task), by=by, log=log
        )
    )


def _no_more(quantity: str, one: str, other: str) -> Test:
    return _tasks(
        lambda task: inside(
            difference(_of(quantity, one, task), _of(quantity, other, task)), NO_WORSE
        )
    )


def _means(both: PredictedAndMeasured) -> dict[str, Number]:
    """Return the mean error of each method on each task."""
    return {
        f"held-out error, {method}, {task}": Number(
            float(mean(_of("held_error", method, task))(both).value)
        )
        for task in TASKS
        for method in METHODS
    }


def _against_decay(method: str) -> tuple[Claim, ...]:
    """Return claims that compare a method with batch norm and weight decay."""
    words = MANNERS[method]
    return (
        ours(
            name=f"{method}-errs-no-more",
            statement=f"Networks {words}, err no more on held-out samples than with "
            "batch norm and weight decay, on any of four tasks.",
            test=_no_more("held_error", method, "decay"),
            rival="directions that need a decay to be good ones",
            asides=_means if method == "grown" else None,
        ),
        ours(
            name=f"{method}-has-wider-margins",
            statement=f"Networks {words}, have wider normalised margins than with "
            "batch norm and weight decay, on each of four tasks.",
            test=_less("mean_margin", "decay", method, log=True),
            rival="a decay that lowers norms further",
        ),
        ours(
            name=f"{method}-forgets-its-start",
            statement=f"Networks {words}, decide more alike from different starts than "
            "with batch norm and weight decay, on each of four tasks.",
            test=_less("disagreement", method, "decay"),
            rival="directions that remember where they began",
        ),
    )


WORDS = {
    "held_error": "error on held-out samples",
    "disagreement": "share of samples that two starts decide differently",
    "margin_gap": "decades between the mean margins of two starts",
}
CLAIMS = (
    *_against_decay("grown"),
    *_against_decay("bare"),
    ours(
        name="growth-beats-holding",
        statement="It matters that norms grow from small ones: held at their last "
        "value all the time, networks err more on held-out samples, on each of four "
        "tasks.",
        test=_less("held_error", "grown", "held"),
        rival="a norm whose last value is all that counts",
    ),
    ours(
        name="decay-keeps-the-start",
        statement="With batch norm and weight decay mean margins still differ between "
        "starts, on each of four tasks.",
        test=_tasks(
            lambda task: inside(
                mean(_of("margin_gap", "decay", task)),
                above(0.05, source="ours", why="by more than a tenth: 12 per cent"),
            )
        ),
        rival="one margin, whatever the start",
    ),
)
