"""Claims of the paper on collapse under the square loss, and on cross-entropy."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from theodolite.core import (
    Alive,
    Choice,
    Claim,
    Judgement,
    PredictedAndMeasured,
    Quantity,
    Read,
    ReadAs,
    Region,
    Row,
    Rows,
    Select,
    Test,
    above,
    at_each,
    below,
    beyond,
    each,
    every,
    inside,
    largest,
    mean,
    measured,
    ordered,
    readings,
    sampled,
    undecided,
)

from ..shared.rows import rank_correlation
from .claims_losses import LOSSES
from .config import GIVEN

# Guesses err on all classes but one; a run that does not end a tenth below is dead.
ALIVE = Alive(
    by=("classes", "labels", "loss", "decay", "start", "rate", "trial"),
    loss="train_error",
    chance=lambda row: 0.9 * (1 - 1 / row["classes"]),
    over="epoch",
    bounds={"norm": 1e12},
)
VANISHED = 0.01  # training error: one sample of a hundred
HALVED = above(
    math.log10(2), source="ours", why="half of what the network had untrained"
)
TENTH = above(1, source="ours", why="a tenth of what the network had untrained")
# The cosine with the class means is one less half of NC3.
ALONG = below(0.02, source="ours", why="a cosine above 0.99: within eight degrees")
AGREED = below(0.02, source="ours", why="two samples of a hundred")
STARTED = Choice(
    what="each property by the end of training, from norms of 0.1 and 5 in each layer",
    why="the paper speaks of convergence and gives no length",
)
TERMINAL = Choice(
    what=f"runs that end with a training error below {VANISHED}",
    why="section 5 speaks of the terminal phase, in which the training error is "
    "effectively zero, and of minima of close to zero loss",
)
CENTRED = Choice(
    what="the head's rows are taken about their mean, as class means are",
    why="heads without biases cannot lose a common part, which changes no decision",
)


def terminal(rows: Rows) -> Rows:
    """Return rows of the runs whose training error is effectively zero.

    Settings with fewer than two such runs are left out.
    """
    fitted: dict[tuple[Any, ...], set[Any]] = {}
    for row in rows.where(quantity="train_error"):
        if row["value"] is not None and row["value"] < VANISHED:
            setting = tuple(row[label] for label in ALIVE.by[:-1])
            fitted.setdefault(setting, set()).add(row["trial"])
    kept = {setting: trials for setting, trials in fitted.items() if len(trials) > 1}

    def keep(row: Row) -> bool:
        setting = tuple(map(row.get, ALIVE.by[:-1]))
        return row.get("trial") in kept.get(setting, ())

    return rows.where(keep)


def end(name: str, **labels: Any) -> Select:
    """Select a property of runs in their terminal phase."""
    return measured(name, stage="end", labels=GIVEN, **labels).out_of(terminal)


def fallen(name: str, by: Region = HALVED, **labels: Any) -> Test:
    """Judge whether training takes off so much of a number of the untrained network."""
    classes = {"classes": labels["classes"]}
    return ordered(
        end(name, **labels),
        measured(name, stage="untrained", labels=GIVEN, **classes),
        log=True,
        by=by,
        name=f"log10 {name} lost ({_network(**labels)})",
    )


def along(**labels: Any) -> Test:
    """Judge whether the last layer is parallel to the class means."""
    rows = end("nc3", **labels)
    return inside(mean(rows, name=f"nc3 at the end ({_network(**labels)})"), ALONG)


def collapsed(name: str, **options: Any) -> Test:
    """Judge a property as arrived, and as on its way; both are natural readings."""
    arrived = along if name == "nc3" else partial(fallen, name, TENTH)
    return readings(
        ReadAs(
            "collapsed",
            "Training gets there: a tenth of what the untrained network had is left, "
            "and heads are within eight degrees of the means.",
            "section 5: collapse to zero, and collapse to the class means",
            everywhere(arrived, **options),
        ),
        ReadAs(
            "collapsing",
            "Training is on its way: half of what the untrained network had is left.",
            "ours: convergence takes for ever",
            everywhere(partial(fallen, name), **options),
        ),
    )


def agreed(**labels: Any) -> Test:
    """Judge whether the nearest class mean predicts the same class as the network."""
    rows = end("nc4", **labels)
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

    ends = end("nc1", loss=loss)
    return _where_fitted(at_each("classes", ends, of_classes, where=classes))


def _where_fitted(test: Test) -> Test:
    """Judge a test, and leave it open if there are runs of which none fits."""

    def judged(both: PredictedAndMeasured) -> Judgement:
        found = test(both)
        if found.missing and len(both.measured.where(quantity="nc1", stage="end")):
            return undecided("no two runs of a setting have a training error near zero")
        return found

    return judged


def _by_norm(classes: int) -> Read:
    """Read the rank correlation of norm and variability among runs that fit."""
    name = f"rank correlation of norm and variability, classes {classes}"
    at = {"classes": classes, "loss": "square"}

    def read(both: PredictedAndMeasured) -> Quantity:
        numbers = end("nc1", **at)(both)
        norms = terminal(both.measured).where(
            quantity="norm", reading="product", labels=GIVEN, **at
        )
        ranks = []
        for trial in numbers.levels("trial"):
            pairs = [
                (
                    norms.value(trial=trial, decay=r["decay"], start=r["start"]),
                    r["value"],
                )
                for r in numbers.where(trial=trial)
            ]
            ranks.append(rank_correlation(*zip(*pairs, strict=True)))
        ranks = [rank for rank in ranks if not math.isnan(rank)]
        few = "fewer than three settings fit their samples"
        return sampled(name, ranks, note="" if ranks else few)

    return read


def _network(classes: int, loss: str, decay: float, start: float) -> str:
    kind = "" if loss == "square" else "cross-entropy, "
    return f"{kind}classes {classes}, decay {decay:g}, start {start:g}"


CLAIMS = (
    Claim(
        name="features-collapse",
        place="Section 5 and corollary 4, NC1",
        statement="Under the square loss with batch norms and weight decay the "
        "features of a class collapse onto their mean, whatever the norm at the end.",
        test=collapsed("nc1"),
        rival="features that vary as those of untrained networks",
        choices=(STARTED, TERMINAL),
    ),
    Claim(
        name="means-form-a-simplex",
        place="Section 5 and corollary 4, NC2",
        statement="Under the square loss with batch norms and weight decay class means "
        "come to be the vertices of a simplex, whatever the norm at the end.",
        test=collapsed("nc2", classes=lambda classes: classes > 2),
        rival="means as far from a simplex as those of untrained networks",
        choices=(
            STARTED,
            TERMINAL,
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
        test=collapsed("nc3"),
        rival="heads at any angle to the means, as in untrained networks",
        choices=(STARTED, TERMINAL, CENTRED),
    ),
    Claim(
        name="nearest-means-decide",
        place="Section 5 and corollary 4, NC4",
        statement="Under the square loss with batch norms and weight decay networks "
        "come to decide for the class with the nearest mean, whatever the norm at the "
        "end.",
        test=everywhere(agreed),
        rival="decisions that have little to do with means",
        choices=(STARTED, TERMINAL),
    ),
    Claim(
        name="at-each-global-minimum",
        place="Appendix G, after corollary 4",
        statement="For the square loss collapse comes with each global minimum, "
        "irrespective of its norm.",
        test=every(
            at_each(
                "classes",
                measured(quantity, stage="solved"),
                lambda rows, region=region: inside(largest(rows), region),
            )
            for quantity, region in (
                ("loss", below(1e-20, source="rounding", why="a solved head")),
                (
                    "nc1",
                    below(
                        0.01,
                        source="ours",
                        why="variance within classes over that between them",
                    ),
                ),
            )
        ),
        rival="a head solved on features that have not collapsed",
        choices=(
            Choice(
                what="untrained batch-normalised networks of more units than samples, "
                "whose last layer is solved for",
                why="section 3 names them: the last layer is enough to provide "
                "solutions for any set of random weights in the previous layers",
            ),
        ),
        own_rows_only=True,
    ),
    beyond(
        name="large-norms-collapse-less",
        place="Beside appendix G",
        statement="Among networks that fit their samples alike, those of larger norm "
        "at the end have features that vary more within classes.",
        test=_where_fitted(
            each(
                "classes",
                end("nc1", loss="square"),
                lambda classes: inside(_by_norm(classes), above(0)),
            )
        ),
        rival="collapse that does not ask for the norm",
    ),
    Claim(
        name="cross-entropy-collapses-too",
        place="Section 5",
        statement="With batch norms and weight decay the four properties hold under "
        "cross-entropy as well.",
        test=every(
            *(collapsed(name, loss="cross_entropy") for name in ("nc1", "nc2", "nc3")),
            everywhere(agreed, loss="cross_entropy"),
        ),
        rival="collapse under one loss alone",
        choices=(STARTED, TERMINAL, CENTRED),
    ),
    *LOSSES,
)
