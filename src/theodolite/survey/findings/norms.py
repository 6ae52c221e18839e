"""Batch norms where they cannot work."""

from ..records.whole_survey import Survey
from .evidence import Evidence, Figure, by_module, figure_of, smallest
from .rule import rule


@rule(
    "batch-norm-of-one",
    "sick",
    "Batch norms get one value per channel, so training is impossible",
    quantity="batch_per_channel",
    source="the variance of one value is 0; what batch norm computes in train mode",
    confidence="proved",
)
def batch_norm_of_one(survey: Survey) -> Evidence | None:
    """One value has no variance: in train mode torch refuses such a batch, and the
    numbers here are those of eval mode. Give batches of more samples, also the last one
    of an epoch (drop_last=True of a DataLoader), put the norms in eval mode, or use a
    norm of single samples, such as group norm.
    """
    live = {name for name, f in by_module(survey, "in_train_mode") if f.value}
    counts = [
        (row["module"], figure_of(row))
        for row in survey.find("batch_per_channel")
        if "BatchNorm" in str(row.get("kind")) and row["module"] in live
    ]
    if (least := smallest(counts)) is None:
        return None
    where = tuple(name for name, f in counts if f.value <= 1)
    return Evidence(figure=least[1], threshold=2.0, above=False, where=where)


@rule(
    "frozen-norm-follows-batches",
    "warning",
    "A frozen block still changes",
    quantity="norms that are frozen and in train mode",
    source="what batch norm computes in train mode",
    confidence="proved",
)
def frozen_norm_follows_batches(survey: Survey) -> Evidence | None:
    """Its parameters are frozen, but its batch norm is in train mode: it normalises by
    the statistics of each batch and updates its running statistics. Put frozen blocks
    in eval mode, after every call of model.train().
    """
    rows = survey.find("frozen_in_train_mode")
    batch_norms = [row for row in rows if "BatchNorm" in str(row.get("kind"))]
    if not batch_norms:
        return None
    names = tuple(row["module"] for row in batch_norms if row["value"])
    count = Figure(float(len(names)))
    return Evidence(figure=count, threshold=0.5, above=True, where=names)
