"""A paper's statement, and the verdict that numbers give on it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from theodolite.core.rows import Rows, plain


class Outcome(StrEnum):
    """What the numbers say of a claim."""

    HOLDS = "HOLDS"
    FAILS = "FAILS"
    UNDECIDED = "UNDECIDED"


class Kind(StrEnum):
    """A claim of the paper, or an error found in it."""

    CLAIM = "claim"
    ERRATUM = "erratum"


@dataclass(frozen=True)
class Number:
    """A value with its error; ``error`` is None where it is exact by definition."""

    value: float
    error: float | None = None

    def __str__(self) -> str:
        if self.error is None:
            return f"{self.value:.6g}"
        return f"{self.value:.6g} ± {self.error:.2g}"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """An outcome, the numbers that decided it, and the reason in one sentence.

    Attributes:
        outcome: What the numbers say.
        because: The reason.
        numbers: What decided.
        rests_on: Name of other rows than the run's own that decided, if so.
        alone: What the run's own rows say in that case, if there are any.
    """

    outcome: Outcome
    because: str
    numbers: Mapping[str, Number | float | int] = field(default_factory=dict)
    rests_on: str = ""
    alone: Outcome | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values; every number has ``value`` and ``error``."""
        numbers = {}
        for name, given in self.numbers.items():
            number = given if isinstance(given, Number) else Number(given)
            numbers[name] = {"value": number.value, "error": number.error}
        return plain(
            {
                "outcome": str(self.outcome),
                "because": self.because,
                "numbers": numbers,
                "rests_on": self.rests_on,
                "alone": self.alone,
            }
        )


Check = Callable[[Rows, Rows], Verdict]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement of a paper with the check that judges it.

    An erratum is a claim of its own: it HOLDS when the printed formula is refuted by
    a counterexample computed on the spot and the corrected one stands.

    Attributes:
        name: Short name, unique within the study.
        place: Theorem, equation, figure panel or table cell.
        statement: The claim in our words; ``$…$`` is mathematics.
        check: Function of predicted and measured rows.
        rival: What else the numbers could have shown, and exclude.
        kind: Claim or erratum.
        printed: For an erratum, what the paper prints.
        corrected: For an erratum, what is right.
    """

    name: str
    place: str
    statement: str
    check: Check
    rival: str
    kind: Kind = Kind.CLAIM
    printed: str = ""
    corrected: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the check."""
        return {
            "claim": self.name,
            "place": self.place,
            "kind": str(self.kind),
            "statement": self.statement,
            "rival": self.rival,
            "printed": self.printed,
            "corrected": self.corrected,
        }


def holds_if(
    condition: bool,
    numbers: Mapping[str, Number | float | int],
    *,
    holds: str,
    fails: str,
) -> Verdict:
    """HOLDS if the condition is met, else FAILS, each with its own reason.

    A number that is NaN decides nothing: the verdict is then UNDECIDED.
    """
    values = {
        name: n.value if isinstance(n, Number) else n for name, n in numbers.items()
    }
    lost = [name for name, value in values.items() if math.isnan(value)]
    if lost:
        return undecided(f"{', '.join(lost)} could not be computed", numbers)
    outcome = Outcome.HOLDS if condition else Outcome.FAILS
    return Verdict(
        outcome=outcome, because=holds if condition else fails, numbers=numbers
    )


def undecided(because: str, numbers: Mapping[str, Number | float | int]) -> Verdict:
    """The numbers cannot tell."""
    return Verdict(outcome=Outcome.UNDECIDED, because=because, numbers=numbers)
