"""What the numbers mean, and what to do about it."""

import math
from dataclasses import dataclass
from typing import Literal

from .outcomes import on_samples

Severity = Literal["sick", "warning", "note", "good"]
Confidence = Literal["proved", "measured", "rule of thumb"]
AdviceKind = Literal[
    "surgery", "rate", "initialisation", "batch_size", "optimizer", "mode"
]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A rule that fired, with the number behind it.

    Attributes:
        rule: Its name.
        severity: How bad it is.
        title: One line in plain words.
        says: Two or three sentences for somebody who does not know the papers.
        quantity: The row's quantity that it judges.
        value: The number, NaN where it was not finite.
        error: Its error.
        threshold: What it is held against.
        above: Whether it fires above the threshold, or below.
        where: Names of the blocks or modules concerned.
        source: Theorem, figure or study that gives the threshold.
        study: ``paper/study`` that backs it, or ``""``.
        confidence: How well the rule is founded.
        n_samples: Samples that the number was taken on, if that is known.
        of_samples: Samples that were given for it.
    """

    rule: str
    severity: Severity
    title: str
    says: str
    quantity: str
    value: float = math.nan
    error: float | None = None
    threshold: float = math.nan
    above: bool
    where: tuple[str, ...] = ()
    source: str = ""
    study: str = ""
    confidence: Confidence = "rule of thumb"
    n_samples: int | None = None
    of_samples: int | None = None

    @property
    def on_samples(self) -> str:
        """Words for a number that was not taken on all samples, else nothing."""
        if self.n_samples is None or self.of_samples is None:
            return ""
        return on_samples((self.n_samples, self.of_samples))


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Advice put to the test: both networks trained from equal seeds and batches.

    Attributes:
        difference: Mean over seeds of the loss with the advice less that without.
        low: Lower end of its interval.
        high: Upper end.
        n_seeds: Pairs of trainings.
        steps: Updates of each.
        helped: ``"yes"``, ``"no"``, or ``"open"`` where the interval holds zero.
        said: One sentence.
    """

    difference: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n_seeds: int
    steps: int
    helped: Literal["yes", "no", "open"]
    said: str = ""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """A change that answers a finding, as code that runs.

    Attributes:
        rule: Rule of the finding.
        title: One line.
        code: The lines that apply it, given ``model``, ``inputs``, ``optimizer``.
        kind: What is changed.
        trial: How it did, where it was tried.
    """

    rule: str
    title: str
    code: str
    kind: AdviceKind
    trial: Trial | None = None
