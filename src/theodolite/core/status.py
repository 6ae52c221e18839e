"""How far a number may be trusted, and under which normalisation it was taken."""

from enum import StrEnum

from theodolite.core.errors import UnknownNameError, unknown_name


class Status(StrEnum):
    """Outcome of a measurement; never a silent NaN."""

    EXACT = "exact"
    CONVERGED = "converged"
    FINISHED = "finished"
    ROUNDING = "rounding"
    MAX_MATVECS = "max_matvecs"
    NONFINITE = "nonfinite"
    DIVERGED = "diverged"
    INCOMPLETE = "incomplete"

    @property
    def trusted(self) -> bool:
        """Whether the value is right within its stated error."""
        return self in (Status.EXACT, Status.CONVERGED, Status.FINISHED)

    @property
    def advice(self) -> str:
        """What the status means, and what to try."""
        return _ADVICE[self]


_ADVICE = {
    Status.EXACT: "computed without iteration; the error is rounding",
    Status.CONVERGED: "the residual is below the tolerance",
    Status.FINISHED: "all steps of the training were made; the error is rounding",
    Status.ROUNDING: "below the rounding of its matrix: trust the interval alone",
    Status.MAX_MATVECS: "stopped by the budget: raise max_matvecs or loosen tol",
    Status.NONFINITE: "NaN or infinity met: check the data, the loss and the dtype",
    Status.DIVERGED: "the loss passed its ceiling: lower the learning rate",
    Status.INCOMPLETE: "some points are missing: raise max_starts",
}


class NormMode(StrEnum):
    """Which statistics normalisation layers use while a number is taken.

    ``BATCH``: each batch by its own statistics, differentiated through.
    ``FULL``: statistics of all the data given, differentiated through.
    ``FROZEN``: those statistics held constant.
    ``EVAL``: running statistics, as at inference.
    """

    BATCH = "batch"
    FULL = "full"
    FROZEN = "frozen"
    EVAL = "eval"

    @classmethod
    def _missing_(cls, value: object) -> "NormMode":
        if (meant := _MEANT.get(str(value))) is not None:
            raise UnknownNameError(
                f"unknown norm mode {value!r}: it is {meant}; known: "
                f"{', '.join(sorted(one.value for one in cls))}"
            )
        raise unknown_name("norm mode", str(value), [one.value for one in cls])


# What other libraries call them.
_MEANT = {
    "train": "'batch' for the batch's statistics as in training, 'full' for those of "
    "all the data",
    "test": "'eval' for running statistics",
    "inference": "'eval' for running statistics",
    "running": "'eval' for running statistics",
}
_MEANT["training"] = _MEANT["train"]
