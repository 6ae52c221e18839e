"""Normalisation used where it cannot work."""

from ..records.whole_survey import Survey
from .evidence import Evidence, Figure, by_module, figure_of, smallest
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
)
