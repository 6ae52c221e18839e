"""Claims of the paper on collapse under the square loss, and on cross-entropy."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from theodolite.core import (
    Choice,
    Claim,
    Number,
    PredictedAndMeasured,
    Select,
    Test,
    above,
    at_each,
    below,
    beyond,
    every,
    group_means,
    inside,
    mean,
    measured,
    ordered,
)

from .claims_losses import LOSSES
from .config import GIVEN, LARGE_START

HALVED = above(
    math.log10(2), source="ours", why="half of what the network had untrained"
)
AGREED = below(0.02, source="ours", why="two samples of a hundred")
STARTED = Choice(
    what="each property by the end of training, from norms of 0.1 and 5 in each layer",
    why="the paper speaks of convergence, which takes for ever; how far it has come is "
    "said",
)
CENTRED = Choice(
    what="the head's rows are taken about their mean, as class means are",
    why="heads without biases cannot lose a common part, which changes no decision",
)


def fallen(name: str, **labels: Any) -> Test:
    """Judge whether training halves a number of the untrained network."""
    classes = {"classes": labels["classes"]}
    return ordered(
        measured(name, stage="end", labels=GIVEN, **labels),
        measured(name, stage="untrained", labels=GIVEN, **classes),
        log=True,
        by=HALVED,
        name=f"log10 {name} lost ({_network(**labels)})",
    )


def agreed(**labels: Any) -> Test:
    """Judge whether the nearest class mean predicts the same class as the network."""
    rows = measured("nc4", stage="end", labels=GIVEN, **labels)
    return inside(mean(rows, name=f"nc4 at the end ({_network(**labels)})"), AGREED)


def everywhere(
    make: Callable[..., Test],
    *,
    loss: str = "square",
    decays: Callable[[float], bool] = lambda decay: decay > 0,
    classes: Callable[[int], bool] = lambda classes: True,
) -> Test:
    """Judge a test for all numbers of classes, decays and starts."""

    def of_run(rows: Select) -> Test:
        return make(
            **{k: rows.labels[k] for k in ("classes", "loss", "decay", "start")}
        )

    def of_decay(rows: Select) -> Test:
        return at_each("start", rows, of_run)

    def of_classes(rows: Select) -> Test:
        return at_each("decay", rows, of_decay, where=decays)

    ends = measured("nc1", stage="end", loss=loss)
    return at_each("classes", ends, of_classes, where=classes)


def _network(classes: int, loss: str, decay: float, start: float) -> str:
    kind = "" if loss == "square" else "cross-entropy, "
    return f"{kind}classes {classes}, decay {decay:g}, start {start:g}"


def _fitted(both: PredictedAndMeasured) -> Mapping[str, Number]:
    """Return training loss and error without decay, from large initial norms."""
    rows = both.measured.where(
        loss="square", decay=0.0, start=LARGE_START, labels=GIVEN
    )
    return {
        f"{label}, {row['classes']} classes": Number(row["value"], row["error"])
        for name, label in (("train_loss", "loss"), ("train_error", "training error"))
        for row in group_means(rows.where(quantity=name), ("classes",))
    }


CLAIMS = (
    Claim(
        name="features-collapse",
        place="Section 5 and corollary 4, NC1",
        statement="Under the square loss with batch norms and weight decay the "
        "features of a class collapse onto their mean, whatever the norm at the end.",
        test=everywhere(lambda **at: fallen("nc1", **at)),
        rival="features that vary as those of untrained networks",
        choices=(STARTED,),
    ),
    Claim(
        name="means-form-a-simplex",
        place="Section 5 and corollary 4, NC2",
        statement="Under the square loss with batch norms and weight decay class means "
        "come to be the vertices of a simplex, whatever the norm at the end.",
        test=everywhere(
            lambda **at: fallen("nc2", **at), classes=lambda classes: classes > 2
        ),
        rival="means as far from a simplex as those of untrained networks",
        choices=(
            STARTED,
            Choice(
                what="three classes and more",
                why="means of two are opposite about their middle, whatever they are",
            ),
        ),
    ),
    Claim(
        name="heads-follow-means",
        place="Section 5 and corollary 4, NC3",
        statement="Under the square loss with batch norms and weight decay the last "
        "layer comes to be the class means up to a factor, whatever the norm at the "
        "end.",
        test=everywhere(lambda **at: fallen("nc3", **at)),
        rival="heads at any angle to the means, as in untrained networks",
        choices=(STARTED, CENTRED),
    ),
    Claim(
        name="nearest-means-decide",
        place="Section 5 and corollary 4, NC4",
        statement="Under the square loss with batch norms and weight decay networks "
        "come to decide for the class with the nearest mean, whatever the norm at the "
        "end.",
        test=everywhere(agreed),
        rival="decisions that have little to do with means",
        choices=(STARTED,),
    ),
    Claim(
        name="at-each-global-minimum",
        place="Appendix G, after corollary 4",
        statement="For the square loss collapse comes with each global minimum, "
        "irrespective of its norm.",
        test=every(
            everywhere(
                lambda **at: fallen("nc1", **at), decays=lambda decay: decay == 0
            ),
            everywhere(agreed, decays=lambda decay: decay == 0),
        ),
        rival="minima of large norm whose features have not collapsed",
        choices=(
            STARTED,
            Choice(
                what="trainings without decay that end near a loss of zero",
                why="a global minimum of the square loss has none; those with decay "
                "are other claims",
            ),
        ),
        asides=_fitted,
    ),
    beyond(
        name="large-norms-collapse-less",
        place="Beside appendix G",
        statement="Among networks that fit their samples alike, those of larger norm "
        "at the end have features that vary more within classes.",
        test=at_each(
            "classes",
            measured("rank", of="nc1"),
            lambda rows: inside(
                mean(rows, name="rank correlation of norm and variability"),
                above(0),
            ),
        ),
        rival="collapse that does not ask for the norm",
    ),
    Claim(
        name="cross-entropy-collapses-too",
        place="Section 5",
        statement="With batch norms and weight decay the four properties hold under "
        "cross-entropy as well.",
        test=every(
            *(
                everywhere(
                    lambda name=name, **at: fallen(name, **at), loss="cross_entropy"
                )
                for name in ("nc1", "nc2", "nc3")
            ),
            everywhere(agreed, loss="cross_entropy"),
        ),
        rival="collapse under one loss alone",
        choices=(STARTED, CENTRED),
    ),
    *LOSSES,
)
