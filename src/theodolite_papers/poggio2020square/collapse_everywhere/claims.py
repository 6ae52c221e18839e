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
FORGOTTEN = 1.5  # between norms from starts 6,000,000 apart
Among = Callable[[Rows], Rows]
PROPERTIES = {
    "nc1": "variability within classes",
    "nc2": "distance of the means from a simplex",
    "nc3": "distance of the heads from the means",
    "nc4": "share of samples decided against the nearest mean",
}
TENTH = above(1, source="ours", why="a tenth of what the network had untrained")
# The cosine with the class means is one less half of NC3.
ALONG = below(0.02, source="ours", why="a cosine above 0.99: within eight degrees")
AGREED = below(0.02, source="ours", why="two samples of a hundred")
TERMINAL = Choice(
    what=f"runs that end with a training error below {VANISHED}",
    why="section 5 speaks of the terminal phase, in which the training error is "
    "effectively zero, and of minima of close to zero loss",
)
RESTING = Choice(
    what="at rest: norms from both starts end within a factor of 1.5",
    why="with decay the end forgets the start; the paper gives no length",
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


def at_rest(rows: Rows) -> Rows:
    """Return rows of the same runs where norms have forgotten from where they started.

    Norms from all starts then end within a factor of ``FORGOTTEN``.
    """
    by = tuple(label for label in ALIVE.by if label not in ("start", "trial"))
    ends: dict[tuple[Any, ...], dict[float, list[float]]] = {}
    for row in rows.where(quantity="norm", reading="product"):
        if row["value"] is not None:
            of_start = ends.setdefault(tuple(row[label] for label in by), {})
            of_start.setdefault(row["start"], []).append(math.log(row["value"]))
    means = {k: [sum(v) / len(v) for v in each.values()] for k, each in ends.items()}
    resting = {
        setting
        for setting, logs in means.items()
        if len(logs) > 1 and max(logs) - min(logs) < math.log(FORGOTTEN)
    }
    kept = rows.where(lambda row: tuple(map(row.get, by)) in resting)
    return terminal(kept)


def end(name: str, among: Among = terminal, **labels: Any) -> Select:
    """Select a property of some runs at the end of training."""
    rows = measured(name, stage="end", labels=GIVEN, **labels).out_of(among)
    return rows.called(PROPERTIES.get(name, ""))


def fallen(name: str, by: Region = TENTH, among: Among = terminal, **at: Any) -> Test:
    """Judge whether training takes off so much of a number of the untrained network."""
    untrained = measured(name, stage="untrained", labels=GIVEN, classes=at["classes"])
    lost = f"log10 {PROPERTIES[name]} lost ({_network(**at)})"
    return ordered(end(name, among, **at), untrained, log=True, by=by, name=lost)


def small(name: str, most: Region, among: Among = terminal, **at: Any) -> Test:
    """Judge whether a property at the end is near zero."""
    title = f"{PROPERTIES[name]} at the end ({_network(**at)})"
    return inside(mean(end(name, among, **at), name=title), most)


def collapsed(name: str, loss: str = "square") -> Test:
    """Judge a property where training rests and where it fits, of all and two classes.

    Means of two classes are a simplex whatever they are, so that NC2 is of more alone.
    Appendix G restricts the square loss to two; cross-entropy is that of others' work.
    """
    arrived, words = {
        "nc3": (partial(small, name, ALONG), "heads are within eight degrees of means"),
        "nc4": (partial(small, name, AGREED), "the nearest mean decides as they do"),
    }.get(name, (partial(fallen, name), "a tenth of what they had untrained is left"))
    scopes: dict[str, Callable[[int], bool]] = {
        "": lambda classes: name != "nc2" or classes > 2
    }
    if name != "nc2" and loss == "square":
        scopes[", two classes"] = lambda classes: classes == 2
    listed = [
        ReadAs(
            f"{when}{scope}",
            f"Of networks {where} {words}.",
            f"{source}{scope and '; appendix G, restricted to two classes'}",
            everywhere(arrived, among=among, loss=loss, classes=classes),
        )
        for scope, classes in scopes.items()
        for when, where, source, among in (
            (
                "at rest",
                "that fit and whose norms have come to rest",
                "corollary 4: at convergence, where $\\rho$ and all $V_k$ rest",
                at_rest,
            ),
            (
                "terminal phase",
                "that fit",
                "section 5: the training error is effectively zero",
                terminal,
            ),
        )
    ]
    return readings(*listed)


def everywhere(
    make: Callable[..., Test],
    *,
    among: Among = terminal,
    loss: str = "square",
    decays: Callable[[float], bool] = lambda decay: decay > 0,
    classes: Callable[[int], bool] = lambda classes: True,
) -> Test:
    """Judge a test for all numbers of classes, decays and starts."""

    def of_run(rows: Select) -> Test:
        at = {k: rows.labels[k] for k in ("classes", "loss", "decay", "start")}
        return make(among=among, **at)

    def of_decay(rows: Select) -> Test:
        return at_each("start", rows, of_run)

    def of_classes(rows: Select) -> Test:
        return at_each("decay", rows, of_decay, where=decays)

    ends = end("nc1", among, loss=loss)
    return _where_fitted(at_each("classes", ends, of_classes, where=classes), among)


def _where_fitted(test: Test, among: Among = terminal) -> Test:
    """Judge a test, and leave it open if there are runs of which none fits."""

    def judged(both: PredictedAndMeasured) -> Judgement:
        found = test(both)
        if found.missing and len(both.measured.where(quantity="nc1", stage="end")):
            of_those = " at rest" if among is at_rest else ""
            return undecided(
                f"no two runs of a setting{of_those} have a training error near zero"
            )
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


WORDS = {
    "nc1": "variability within classes (NC1)",
}
CLAIMS = (
    Claim(
        name="features-collapse",
        place="Section 5 and corollary 4, NC1",
        statement="With batch norms and weight decay the features of a class collapse "
        "onto their mean at minima of close to zero square loss, whatever the norm.",
        test=collapsed("nc1"),
        rival="features that vary as those of untrained networks",
        choices=(RESTING, TERMINAL),
    ),
    Claim(
        name="means-form-a-simplex",
        place="Section 5 and corollary 4, NC2",
        statement="With batch norms and weight decay class means collapse to the "
        "vertices of a simplex at minima of close to zero square loss, whatever the "
        "norm.",
        test=collapsed("nc2"),
        rival="means as far from a simplex as those of untrained networks",
        choices=(
            RESTING,
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
        statement="With batch norms and weight decay the last layer collapses to the "
        "class means, up to a factor, at minima of close to zero square loss, whatever "
        "the norm.",
        test=collapsed("nc3"),
        rival="heads at any angle to the means, as in untrained networks",
        choices=(RESTING, TERMINAL, CENTRED),
    ),
    Claim(
        name="nearest-means-decide",
        place="Section 5 and corollary 4, NC4",
        statement="With batch norms and weight decay networks decide for the class "
        "with the nearest mean at minima of close to zero square loss, whatever the "
        "norm.",
        test=collapsed("nc4"),
        rival="decisions that have little to do with means",
        choices=(RESTING, TERMINAL),
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
        statement="With batch norms and weight decay the four properties should hold "
        "under cross-entropy as well.",
        test=every(collapsed(name, loss="cross_entropy") for name in PROPERTIES),
        rival="collapse under one loss alone",
        choices=(RESTING, TERMINAL, CENTRED),
    ),
    *LOSSES,
)
