"""A check: one small function with its sentence, its source and its repair."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ..records.finding import AdviceKind, Confidence, Severity
from .seen import Seen


@dataclass(frozen=True)
class Sign:
    """What a check saw, beyond its threshold.

    Attributes:
        value: The number that decides.
        threshold: Its limit.
        above: Whether the number must be above the limit for the check to fire.
        where: Module or parameter concerned, or several.
        detail: A sentence with this network's numbers.
        repair: Lines of code that repair it, given ``model`` and ``optimizer``; where
            the user's own line must change, a comment that shows it.
        severity: Severity, if it differs from that of the check.
    """

    value: float
    threshold: float = 0.0
    above: bool = True
    where: str | Iterable[str] = ()
    detail: str = ""
    repair: str = ""
    severity: Severity | None = None


@dataclass(frozen=True, kw_only=True)
class Check:
    """A rule about how a network is about to be trained.

    Attributes:
        name: In kebab case, unique, stable.
        severity: How bad it is. What is ``"sick"`` becomes a warning if the network
            learns in its trial steps.
        title: One line in plain words.
        says: What it means.
        source: Reference for the threshold.
        look: Returns what was seen, or None.
        repaired_by: Title of the repair.
        kind: What the repair changes.
        confidence: How strong the evidence for the check is.
        about: What must be real, not made up, for the check to apply.
    """

    name: str
    severity: Severity
    title: str
    says: str
    source: str
    look: Callable[[Seen], Sign | None]
    repaired_by: str = ""
    kind: AdviceKind = "optimizer"
    confidence: Confidence = "proved"
    about: str = "network"


CHECKS: list[Check] = []
# Repairs that this process wrote; a survey from a file may hold code of others.
WRITTEN: set[str] = set()


def check(
    name: str, severity: Severity, title: str, **words: Any
) -> Callable[[Callable[[Seen], Sign | None]], Callable[[Seen], Sign | None]]:
    """Add a function to the checks; its docstring is the sentence on what it means."""

    def add(look: Callable[[Seen], Sign | None]) -> Callable[[Seen], Sign | None]:
        says = " ".join((look.__doc__ or "").split())
        CHECKS.append(
            Check(
                name=name, severity=severity, title=title, says=says, look=look, **words
            )
        )
        return look

    return add
