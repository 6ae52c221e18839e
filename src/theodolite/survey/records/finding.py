"""Findings, advice, and trials of advice."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from .outcomes import on_samples

CHECK = "check"  # quantity of findings of first aid, which are no measured numbers
Severity = Literal["sick", "warning", "note", "good"]
Confidence = Literal["proved", "measured", "rule of thumb"]
AdviceKind = Literal[
    "surgery",
    "rate",
    "initialisation",
    "batch_size",
    "optimizer",
    "mode",
    "loss",
    "step",
]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A rule that fired, with the number behind it.

    Attributes:
        rule: Its name.
        severity: How bad it is.
        title: One line in plain words.
        says: Two or three sentences for a reader who does not know the papers.
        quantity: Quantity of the row that it judges.
        value: The number, NaN if it was not finite.
        error: Its error.
        threshold: The threshold of the rule.
        above: Whether it fires above the threshold, or below.
        where: Names of the blocks or modules concerned.
        source: Theorem, figure or study that gives the threshold.
        study: ``paper/study`` that supports it, or ``""``.
        confidence: How strong the evidence for the rule is.
        n_samples: Number of samples used for the number, if known.
        of_samples: Number of samples given.
        symptoms: Findings that a repair of this one clears on a copy.
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
    symptoms: tuple["Finding", ...] = ()

    @property
    def on_samples(self) -> str:
        """Words for the samples used, empty if all were used."""
        if self.n_samples is None or self.of_samples is None:
            return ""
        return on_samples((self.n_samples, self.of_samples))


def with_symptoms(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings, each followed by its symptoms."""
    return [each for one in findings for each in (one, *one.symptoms)]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Result of training with and without the advice, from equal seeds and batches.

    Attributes:
        difference: Loss with the advice minus loss without, mean over seeds.
        low: The least difference of a seed.
        high: The largest.
        n_seeds: Number of pairs of trainings, 0 if the advice cannot be applied.
        steps: Updates per training.
        helped: ``"yes"`` if the loss is 10 % lower with every seed, ``"harm"`` if it is
            10 % higher on average, and 5 % with every seed, or not finite; else
            ``"no"``.
        said: The result in one sentence.
    """

    difference: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n_seeds: int
    steps: int
    helped: Literal["yes", "no", "harm"]
    said: str = ""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """A change that answers a finding, as code that runs.

    Attributes:
        rule: Rule of the finding.
        title: One line.
        code: The lines that apply it, given ``model``, ``inputs`` and, as far as the
            survey was given them, ``optimizer``, ``loss`` and ``step``; a comment if a
            person must change a line.
        kind: What is changed.
        trial: Result of its trial, if it was tried.
    """

    rule: str
    title: str
    code: str
    kind: AdviceKind
    trial: Trial | None = None
