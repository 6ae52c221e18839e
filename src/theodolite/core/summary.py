"""The summary of a judged run, as it is saved: verdicts, comparisons and figures.

Fields are named as in the file. None means a number that is not finite, and
the missing end of an interval.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .errors import SummaryError
from .schema import SchemaError, parse_record, read_record, record_values
from .verdicts.claims import Choice, Grade, Kind
from .verdicts.judgement import Outcome, depends_on_reading
from .verdicts.selecting import Region

FORMAT = 1

# Source of the rows: the run itself, or a committed long run.
Whose = Literal["own", "committed"]


@dataclass(frozen=True, kw_only=True)
class SavedNumber:
    """A value (None if not finite) with its error (None if exact)."""

    value: float | None = None
    error: float | None = None


@dataclass(frozen=True, kw_only=True)
class SavedJudgement:
    """A node of a judgement: a number with its region, or pieces joined by a rule.

    Attributes:
        name: What was judged, in words.
        rule: "number" for a leaf; "every", "some", "against" or "readings" for a join.
        outcome: Outcome of the node.
        p_holds: How probable such numbers are if the claim is false.
        p_fails: How probable such numbers are if the claim is true.
        note: Why nothing could be judged; of a reading, what it is and its source.
        value: Estimate of a leaf.
        error: Its standard error and bounds.
        low: Lower end of its interval.
        high: Upper end of its interval.
        n: Networks behind it.
        region: The range that the claim states for it.
        turns_at: End or margin of the region at which the leaf's verdict would change.
        decider: Index of the piece that decides.
        pieces: The joined judgements.
    """

    name: str
    rule: str
    outcome: Outcome
    p_holds: float
    p_fails: float
    note: str = ""
    value: float | None = None
    error: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    region: Region | None = None
    turns_at: float | None = None
    decider: int | None = None
    pieces: tuple["SavedJudgement", ...] = ()

    def __post_init__(self) -> None:
        if self.pieces and self.decider not in range(len(self.pieces)):
            wanted = f"a piece from 0 to {len(self.pieces) - 1}"
            raise ValueError(f"Expected {wanted} as decider, got `{self.decider}`")

    @property
    def deciding(self) -> "SavedJudgement":
        """The leaf that decides."""
        return self if self.decider is None else self.pieces[self.decider].deciding

    @property
    def leaves(self) -> tuple["SavedJudgement", ...]:
        """All single numbers below this node."""
        if not self.pieces:
            return (self,) if self.region is not None else ()
        return tuple(leaf for piece in self.pieces for leaf in piece.leaves)

    @property
    def readings(self) -> tuple["SavedJudgement", ...]:
        """What each reading says, where the claim lists several."""
        if self.rule == "readings":
            return self.pieces
        return tuple(one for piece in self.pieces for one in piece.readings)

    @property
    def ours(self) -> tuple["SavedJudgement", ...]:
        """The deciding or least certain leaf of each region that is ours."""
        leaves: dict[Region, SavedJudgement] = {}
        for leaf in sorted(self.leaves, key=self._least_sure_first):
            if leaf.region is not None and leaf.region.source == "ours":
                leaves.setdefault(leaf.region, leaf)
        return tuple(leaves.values())

    @property
    def margin(self) -> str:
        """Who chose a leaf's region and why, and where its verdict would turn."""
        if self.region is None or self.region.source == "paper":
            return ""
        whose = "ours" if self.region.source == "ours" else "what rounding allows"
        text = f"the region {self.region} is {whose}"
        text += f": {self.region.why}" if self.region.why else ""
        if self.turns_at is None:
            return text
        end = "a margin of" if self.region.two_sided else "an end at"
        return f"{text}; the number's verdict turns at {end} {self.turns_at:.3g}"

    def _least_sure_first(self, leaf: "SavedJudgement") -> tuple[bool, bool, float]:
        chance = leaf.p_fails if self.outcome is Outcome.FAILS else leaf.p_holds
        return leaf is not self.deciding, leaf.outcome is not self.outcome, -chance


@dataclass(frozen=True, kw_only=True)
class SavedRuling:
    """The verdict of one set of rows on a claim; for an erratum, also as corrected."""

    outcome: Outcome
    because: str
    judged: SavedJudgement
    corrected: SavedJudgement | None = None
    corrected_because: str
    confirmed: bool
    needed: int | None = None
    hangs_on_ours: bool
    numbers: Mapping[str, SavedNumber]
    died: str = ""


@dataclass(frozen=True, kw_only=True)
class SavedVerdict:
    """A claim and its verdict.

    Attributes:
        claim: Name of the claim, unique within its study.
        place: Theorem, equation, figure panel or table cell.
        kind: Whether it is the paper's claim, an erratum or ours.
        statement: The claim in our words.
        rival: What else the numbers could have shown.
        printed: For an erratum, what the paper prints.
        corrected: For an erratum, the correct statement.
        choices: What the paper leaves open and we chose.
        verdict: The outcome; for an erratum, of the printed statement.
        rests_on: Whose rows decide, "own" or "committed".
        on: Data of the committed run, where it differs from the run's own.
        hangs_on_ours: Whether a margin or choice that is not the paper's decides.
        departures: Where its rows depart from the paper and cannot be varied.
        grade: For an erratum, "false", "loose" or "reading".
        shortened: What is smaller than in the paper, in words; otherwise empty.
        own: Ruling on the run's own rows.
        committed: Ruling on the rows of a committed run.
    """

    claim: str
    place: str
    kind: Kind
    statement: str
    rival: str
    printed: str
    corrected: str
    choices: tuple[Choice, ...]
    verdict: Outcome
    rests_on: Whose
    on: str
    hangs_on_ours: bool
    departures: tuple[str, ...] = ()
    grade: str = ""
    shortened: str = ""
    own: SavedRuling | None = None
    committed: SavedRuling | None = None

    def __post_init__(self) -> None:
        if getattr(self, self.rests_on) is None:
            raise ValueError(f"Expected the ruling {self.rests_on}, on which it rests")

    @property
    def name(self) -> str:
        """The claim's name, under the attribute name that claims use."""
        return self.claim

    @property
    def ruling(self) -> SavedRuling:
        """The ruling that counts: the committed one where there is one."""
        ruling = self.committed or self.own
        assert ruling is not None  # see __post_init__
        return ruling

    @property
    def rulings(self) -> Iterator[tuple[str, SavedRuling]]:
        """Source of the rows and their ruling, the run's own first."""
        for name, ruling in (("own", self.own), ("committed", self.committed)):
            if ruling is not None:
                yield name, ruling

    @property
    def because(self) -> str:
        """The reason of the ruling that counts."""
        return self.ruling.because

    @property
    def deciding(self) -> SavedJudgement:
        """The number that decides."""
        return self.ruling.judged.deciding

    @property
    def depends_on_reading(self) -> bool:
        """Whether it is open because readings of the claim differ."""
        return depends_on_reading(self.ruling.judged)

    @property
    def words(self) -> list[str]:
        """Words that stand beside the verdict."""
        depends = ["depends on the reading"] if self.depends_on_reading else []
        return [*depends, *(["shortened"] if self.shortened else [])]

    @property
    def numbers(self) -> Mapping[str, SavedNumber]:
        """Other numbers of the ruling that counts."""
        return self.ruling.numbers

    @property
    def confirmed(self) -> bool:
        """Whether it is a confirmed erratum; a loose one may be true as printed."""
        sharper = self.grade == Grade.LOOSE and self.as_corrected is Outcome.HOLDS
        return self.kind is Kind.ERRATUM and (self.ruling.confirmed or sharper)

    @property
    def as_corrected(self) -> Outcome | None:
        """Outcome of the corrected statement, if it was judged."""
        corrected = self.ruling.corrected
        return None if corrected is None else corrected.outcome

    @property
    def alone(self) -> Outcome | None:
        """Outcome of the run's own rows if committed rows decide."""
        return self.own.outcome if self.committed and self.own else None


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One number predicted and measured."""

    label: str
    predicted: float | None
    predicted_error: float | None = None
    measured: float | None
    error: float | None = None


@dataclass(frozen=True, kw_only=True)
class SavedFigure:
    """A figure of a run and its files, as paths within the run's folder.

    ``source`` says whose rows it shows, "own" or "committed"; empty if not known.
    """

    name: str
    caption: str
    files: tuple[str, ...]
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class SavedFinding:
    """A claim of a chapter, and prefixes of the names of its key numbers."""

    claim: str
    numbers: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SavedChapter:
    """A step of the paper's argument, with the claims that answer it."""

    title: str
    text: str
    findings: tuple[SavedFinding, ...]


@dataclass(frozen=True, kw_only=True)
class SavedExhibit:
    """A table of a run that an explorer of the report shows.

    Attributes:
        name: Name by which an explorer finds it.
        source: Whose rows they are, "own" or "committed".
        columns: Names of the columns.
        lines: A value for each column: a number, a text, a flag or None.
    """

    name: str
    source: Whose
    columns: tuple[str, ...]
    lines: tuple[tuple[str | int | float | bool | None, ...], ...]

    def __post_init__(self) -> None:
        for line in self.lines:
            if len(line) != len(self.columns):
                wanted = f"lines of {len(self.columns)} values"
                raise ValueError(f"Expected {wanted}, got one of {len(line)}")


@dataclass(frozen=True, kw_only=True)
class SavedExplorer:
    """The interactive part of the report on a paper, and the studies that it shows."""

    name: str
    studies: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SavedPaper:
    """The paper, its studies in its own order, its story, explorer and address."""

    name: str
    title: str
    authors: str
    year: int
    studies: tuple[str, ...] = ()
    story: tuple[SavedChapter, ...] = ()
    explorer: SavedExplorer | None = None
    url: str = ""


@dataclass(frozen=True, kw_only=True)
class SavedStudy:
    """The study, and where it departs from the paper."""

    name: str
    title: str
    summary: str
    departures: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SavedCost:
    """What the run cost."""

    wall_s: float
    cpu_s: float
    passes: int


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A judged run: the paper, the study, the verdicts, and how it was run."""

    paper: SavedPaper
    study: SavedStudy
    scale: str
    judged: str
    command: str
    cost: SavedCost
    claims: tuple[SavedVerdict, ...]
    comparison: tuple[Compared, ...] = ()
    figures: tuple[SavedFigure, ...] = ()
    exhibits: tuple[SavedExhibit, ...] = ()

    @property
    def full_name(self) -> str:
        """``paper/study``."""
        return f"{self.paper.name}/{self.study.name}"

    def to_dict(self) -> dict[str, Any]:
        """Return strict JSON values."""
        return {"format": FORMAT, **record_values(self)}

    def to_text(self) -> str:
        """Return the content of a summary's file."""
        values = self.to_dict()
        text = json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False)
        return text + "\n"


def parse_summary(text: str, *, source: str) -> Summary:
    """Read the text of a summary; ``source`` is its path, for error messages.

    Raises:
        SummaryError: The text is not JSON, of another format, or a field is wrong.
    """
    try:
        return parse_record(Summary, text, number=FORMAT)
    except SchemaError as wrong:
        raise SummaryError(source, str(wrong)) from None


def check_summary(content: Mapping[str, Any], *, source: str) -> Summary:
    """Check plain values, without a format number, as :func:`parse_summary` does."""
    try:
        return read_record(Summary, {**content, "format": FORMAT}, number=FORMAT)
    except SchemaError as wrong:
        raise SummaryError(source, str(wrong)) from None
