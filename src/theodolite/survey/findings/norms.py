"""Normalisation used where it cannot work."""

from ..records.whole_survey import Survey
from .evidence import Evidence, Figure, by_module, figure_of, single, smallest
from .rule import Rule

ONE = 1.0


def _counts(survey: Survey) -> list[tuple[str, Figure]]:
    """Return how many values each batch norm in train mode averages per statistic."""
    live = {name for name, f in by_module(survey, "in_train_mode") if f.value}
    return [
        (row["module"], figure_of(row))
        for row in survey.find("batch_per_channel")
        if "BatchNorm" in str(row.get("kind")) and row["module"] in live
    ]


def _one(survey: Survey) -> Evidence | None:
    """Return the least number of values behind a batch statistic."""
    counts = _counts(survey)
    least = smallest(counts)
    if least is None:
        return None
    return Evidence(
        figure=least[1],
        threshold=2.0,
        above=False,
        where=tuple(name for name, f in counts if f.value <= ONE),
    )


def _frozen(survey: Survey) -> Evidence | None:
    frozen = by_module(survey, "frozen_in_train_mode")
    if not frozen:
        return None
    names = tuple(name for name, f in frozen if f.value)
    return Evidence(
        figure=Figure(float(len(names))), threshold=0.5, above=True, where=names
    )


def _decayed(survey: Survey) -> Evidence | None:
    share = single(survey, "decay_on_invariant_share")
    decays = [figure_of(row).value for row in survey.find("weight_decay")]
    if share is None or not max(decays, default=0.0):
        return None
    names = tuple(dict(by_module(survey, "decays_invariant")))
    return Evidence(figure=share, threshold=0.0, above=True, where=names)


RULES = (
    Rule(
        name="batch-norm-of-one",
        severity="sick",
        title="Batch norms get one value per channel, so this cannot be trained",
        says=(
            "One value has no variance: in train mode torch refuses such a batch, and "
            "the numbers here are those of eval mode. Give batches of more samples, "
            "also the last one of an epoch (drop_last=True of a DataLoader), put the "
            "norms in eval mode, or use a norm that looks at one sample at a time."
        ),
        quantity="batch_per_channel",
        measures=("norms",),
        source="the variance of one value is 0; what batch norm computes in train mode",
        confidence="proved",
        read=_one,
    ),
    Rule(
        name="frozen-norm-follows-batches",
        severity="warning",
        title="A frozen block still changes",
        says=(
            "Its parameters take no gradient, but its batch norm is in train mode: it "
            "uses the statistics of every batch and keeps moving its running ones. "
            "Put frozen blocks in eval mode, after every call of model.train()."
        ),
        quantity="norms that are frozen and in train mode",
        measures=("norms",),
        source="what batch norm computes in train mode",
        confidence="proved",
        read=_frozen,
    ),
    Rule(
        name="decay-on-invariant-weights",
        severity="note",
        title="Weight decay acts on weights whose size does not matter",
        says=(
            "A norm follows these weights, so that the network computes the same "
            "whatever their size. Decay on them is no penalty: it sets how fast their "
            "direction turns, and makes their size forget its start. That is common "
            "and often wanted; know that it is a second learning rate."
        ),
        quantity="decay_on_invariant_share",
        measures=("optimizer",),
        source=(
            "van Laarhoven (2017); Poggio & Liao (2020), observation 2: with decay "
            "norms end alike from all starts, without it they do not"
        ),
        study="poggio2020square/decay_and_margins",
        confidence="measured",
        read=_decayed,
    ),
)
