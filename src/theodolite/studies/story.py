"""A paper's story: chapters that ask, and the claims whose verdicts answer.

The prose of a chapter states no result. Results come from verdicts, so that the story
changes with the numbers.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Finding:
    """A claim whose verdict a chapter tells.

    Attributes:
        claim: ``study/claim``.
        numbers: How the names of the numbers to print begin; the first two by default.
    """

    claim: str
    numbers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chapter:
    """A step of the paper's argument.

    Attributes:
        title: What it is about, in a line.
        text: What the paper says there and how we ask; ``$…$`` is mathematics.
        findings: What the numbers answer, in the order of the argument.
    """

    title: str
    text: str
    findings: tuple[Finding, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as a summary keeps them."""
        return {
            "title": self.title,
            "text": self.text,
            "findings": [
                {"claim": one.claim, "numbers": list(one.numbers)}
                for one in self.findings
            ],
        }
