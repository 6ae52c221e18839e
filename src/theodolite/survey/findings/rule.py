"""A rule: its words, its source, and the number that it reads."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..records.finding import Confidence, Finding, Severity
from ..records.whole_survey import Survey
from .evidence import Evidence

Read = Callable[[Survey], Evidence | None]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule that reads one number of a survey and may return a finding.

    Attributes:
        name: In kebab case, unique.
        severity: How bad it is where it fires.
        title: One line in plain words.
        says: What it means, for a reader who does not know the papers.
        quantity: Name of the number that it reads.
        source: Reference for the threshold.
        study: ``paper/study`` in this project that supports it, or ``""``.
        confidence: How strong the evidence for the rule is.
        read: Returns the number, or None if the survey did not measure it.
    """

    name: str
    severity: Severity
    title: str
    says: str
    quantity: str
    source: str
    confidence: Confidence
    read: Read
    study: str = ""

    def judge(self, survey: Survey) -> Finding | None:
        """Return the finding, or None if the number is not beyond its threshold."""
        evidence = self.read(survey)
        if evidence is None or not evidence.beyond:
            return None
        samples = evidence.figure.samples
        return Finding(
            rule=self.name,
            severity=evidence.severity or self.severity,
            title=self.title,
            says=f"{self.says} {evidence.detail}".strip(),
            quantity=self.quantity,
            value=evidence.figure.value,
            error=evidence.figure.error,
            threshold=evidence.threshold,
            above=evidence.above,
            where=evidence.where,
            source=self.source,
            study=self.study,
            confidence=self.confidence,
            n_samples=samples[0] if samples else None,
            of_samples=samples[1] if samples else None,
        )


WRITTEN: list[Rule] = []


def rule(
    name: str, severity: Severity, title: str, **words: Any
) -> Callable[[Read], Read]:
    """Add a function to the rules; its docstring is the sentence on what it means."""

    def add(read: Read) -> Read:
        says = " ".join((read.__doc__ or "").split())
        WRITTEN.append(
            Rule(
                name=name, severity=severity, title=title, says=says, read=read, **words
            )
        )
        return read

    return add
