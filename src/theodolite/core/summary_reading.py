"""A summary checked field by field against its schema.

Whatever is wrong is one sentence with the file and the field.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from theodolite.core.errors import ConfigError, RunError
from theodolite.core.summary import (
    Compared,
    SavedChapter,
    SavedCost,
    SavedExhibit,
    SavedExplorer,
    SavedFigure,
    SavedFinding,
    SavedJudgement,
    SavedNumber,
    SavedPaper,
    SavedRuling,
    SavedStudy,
    SavedVerdict,
    Summary,
)
from theodolite.core.verdicts.claims import Choice, Kind
from theodolite.core.verdicts.judgement import Outcome
from theodolite.core.verdicts.region import Region

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)


class SummaryError(RunError):
    """A summary that does not fit its schema; ``problem`` says where, as a predicate.

    Example:
        >>> str(SummaryError("summary.json", "lacks claims"))
        'summary.json lacks claims: write it anew with `theodolite repair`'
    """

    def __init__(self, source: str, problem: str) -> None:
        self.source, self.problem = source, problem
        super().__init__(f"{source} {problem}: write it anew with `theodolite repair`")

    def __reduce__(self) -> tuple[type["SummaryError"], tuple[str, str]]:
        return type(self), (self.source, self.problem)


def parse_summary(text: str, *, source: str) -> Summary:
    """Read the text of a summary.

    Args:
        text: Content of the file.
        source: Its path, to name where something is wrong.

    Raises:
        SummaryError: Where the text is not JSON, or a field is missing or wrong.
    """
    try:
        content = json.loads(text)
    except ValueError as wrong:
        raise SummaryError(source, f"is not JSON ({wrong})") from None
    except RecursionError:
        raise SummaryError(source, "is nested too deeply") from None
    return check_summary(content, source=source)


def check_summary(content: Any, *, source: str) -> Summary:
    """Check plain values against the schema.

    Raises:
        SummaryError: Where a field is missing or wrong.
    """
    try:
        return _summary(_Fields(content, source))
    except RecursionError:
        raise SummaryError(source, "is nested too deeply") from None


@dataclass(frozen=True)
class _Fields:
    """The fields of one object in a file, and the way to it."""

    content: Any
    source: str
    way: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.content, Mapping):
            raise self.wrong(self.way or "it", self.content, "an object")

    def wrong(self, way: str, value: Any, wanted: str) -> SummaryError:
        """Return the error on a field."""
        told = _told(value)
        told = told if len(told) <= 40 else f"{told[:37]}…"
        return SummaryError(self.source, f"has {way} {told}, wanted {wanted}")

    def path(self, name: str) -> str:
        """Return the way to a field."""
        return f"{self.way}.{name}" if self.way else name

    def take(self, name: str) -> Any:
        """Return a field that must be there."""
        if name not in self.content:
            raise SummaryError(self.source, f"lacks {self.path(name)}")
        return self.content[name]

    def text(self, name: str) -> str:
        """Return a text."""
        value = self.take(name)
        if not isinstance(value, str):
            raise self.wrong(self.path(name), value, "text")
        return value

    def text_or(self, name: str, otherwise: str) -> str:
        """Return a text, or another one where the field is absent."""
        return self.text(name) if name in self.content else otherwise

    def number(self, name: str) -> float | None:
        """Return a number; None, or an absent field, is unknown."""
        value = self.content.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(self.path(name), value, "a number")
        try:
            return float(value) if math.isfinite(value) else None
        except OverflowError:  # a whole number beyond all floats
            return None

    def given(self, name: str) -> float:
        """Return a number that must be known."""
        self.take(name)
        value = self.number(name)
        if value is None:
            raise self.wrong(self.path(name), None, "a number")
        return value

    def whole(self, name: str) -> int | None:
        """Return a whole number; None, or an absent field, is unknown."""
        value = self.content.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong(self.path(name), value, "a whole number")
        return value

    def flag(self, name: str) -> bool:
        """Return a yes or no."""
        value = self.take(name)
        if not isinstance(value, bool):
            raise self.wrong(self.path(name), value, "true or false")
        return value

    def one_of(self, name: str, kind: type[E]) -> E:
        """Return a member of an enumeration."""
        value = self.take(name)
        if value not in [str(member) for member in kind]:
            raise self.wrong(self.path(name), value, f"one of {', '.join(kind)}")
        return kind(value)

    def part(self, name: str, read: "Callable[[_Fields], T]") -> T:
        """Read an object that must be there."""
        return read(_Fields(self.take(name), self.source, self.path(name)))

    def maybe(self, name: str, read: "Callable[[_Fields], T]") -> T | None:
        """Read an object, or None."""
        return None if self.content.get(name) is None else self.part(name, read)

    def listed(self, name: str) -> list[Any]:
        """Return a list; an absent one is empty."""
        value = self.content.get(name, [])
        if not isinstance(value, list | tuple):
            raise self.wrong(self.path(name), value, "a list")
        return list(value)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts."""
        for place, value in enumerate(self.listed(name)):
            if not isinstance(value, str):
                raise self.wrong(f"{self.path(name)}[{place}]", value, "text")
        return tuple(self.listed(name))

    def parts(self, name: str, read: "Callable[[_Fields], T]") -> tuple[T, ...]:
        """Read a list of objects."""
        return tuple(
            read(_Fields(value, self.source, f"{self.path(name)}[{place}]"))
            for place, value in enumerate(self.listed(name))
        )


def _told(value: Any) -> str:
    try:
        return repr(value)
    except (RecursionError, ValueError):  # bottomless, or a number of too many digits
        return type(value).__name__


def _summary(data: _Fields) -> Summary:
    data.take("claims")
    return Summary(
        paper=data.part("paper", _paper),
        study=data.part("study", _study),
        scale=data.text("scale"),
        judged=data.text("judged"),
        command=data.text("command"),
        cost=data.part("cost", _cost),
        claims=data.parts("claims", _verdict),
        comparison=data.parts("comparison", _compared),
        figures=data.parts("figures", _figure),
        exhibits=data.parts("exhibits", _exhibit),
    )


def _paper(data: _Fields) -> SavedPaper:
    year = data.whole("year")
    if year is None:
        raise data.wrong(data.path("year"), year, "a whole number")
    return SavedPaper(
        name=data.text("name"),
        title=data.text("title"),
        authors=data.text("authors"),
        year=year,
        studies=data.texts("studies"),
        story=data.parts("story", _chapter),
        explorer=data.maybe("explorer", _explorer),
        url=data.text_or("url", ""),
    )


def _explorer(data: _Fields) -> SavedExplorer:
    return SavedExplorer(name=data.text("name"), studies=data.texts("studies"))


def _exhibit(data: _Fields) -> SavedExhibit:
    source = data.text("source")
    if source not in ("own", "committed"):
        raise data.wrong(data.path("source"), source, "own or committed")
    columns = data.texts("columns")
    for place, line in enumerate(data.listed("lines")):
        flat = isinstance(line, list | tuple) and len(line) == len(columns)
        if not flat or any(isinstance(one, list | tuple | Mapping) for one in line):
            wanted = f"{len(columns)} numbers or texts"
            raise data.wrong(f"{data.path('lines')}[{place}]", line, wanted)
    lines = tuple(tuple(line) for line in data.listed("lines"))
    return SavedExhibit(
        name=data.text("name"), source=source, columns=columns, lines=lines
    )


def _study(data: _Fields) -> SavedStudy:
    return SavedStudy(
        name=data.text("name"),
        title=data.text("title"),
        summary=data.text("summary"),
        departures=data.texts("departures"),
    )


def _cost(data: _Fields) -> SavedCost:
    return SavedCost(
        wall_s=data.given("wall_s"),
        cpu_s=data.given("cpu_s"),
        passes=int(data.given("passes")),
    )


def _chapter(data: _Fields) -> SavedChapter:
    def finding(one: _Fields) -> SavedFinding:
        return SavedFinding(claim=one.text("claim"), numbers=one.texts("numbers"))

    return SavedChapter(
        title=data.text("title"),
        text=data.text("text"),
        findings=data.parts("findings", finding),
    )


def _compared(data: _Fields) -> Compared:
    for name in ("predicted", "measured"):
        data.take(name)
    return Compared(
        label=data.text("label"),
        predicted=data.number("predicted"),
        predicted_error=data.number("predicted_error"),
        measured=data.number("measured"),
        error=data.number("error"),
    )


def _figure(data: _Fields) -> SavedFigure:
    data.take("files")
    return SavedFigure(
        name=data.text("name"),
        caption=data.text("caption"),
        files=data.texts("files"),
        source=data.text_or("source", ""),
    )


def _verdict(data: _Fields) -> SavedVerdict:
    own, committed = (data.maybe(name, _ruling) for name in ("own", "committed"))
    rests_on = data.text("rests_on")
    if rests_on not in ("own", "committed"):
        raise data.wrong(data.path("rests_on"), rests_on, "own or committed")
    if data.content.get(rests_on) is None:
        raise data.wrong(data.path(rests_on), None, "a ruling, on which it rests")
    return SavedVerdict(
        claim=data.text("claim"),
        place=data.text("place"),
        kind=data.one_of("kind", Kind),
        statement=data.text("statement"),
        rival=data.text("rival"),
        printed=data.text("printed"),
        corrected=data.text("corrected"),
        choices=data.parts(
            "choices", lambda one: Choice(what=one.text("what"), why=one.text("why"))
        ),
        verdict=data.one_of("verdict", Outcome),
        rests_on=rests_on,
        on=data.text("on"),
        hangs_on_ours=data.flag("hangs_on_ours"),
        own=own,
        committed=committed,
    )


def _ruling(data: _Fields) -> SavedRuling:
    return SavedRuling(
        outcome=data.one_of("outcome", Outcome),
        because=data.text("because"),
        judged=data.part("judged", _judgement),
        corrected=data.maybe("corrected", _judgement),
        corrected_because=data.text("corrected_because"),
        confirmed=data.flag("confirmed"),
        needed=data.whole("needed"),
        hangs_on_ours=data.flag("hangs_on_ours"),
        numbers=data.part("numbers", _numbers),
    )


def _numbers(data: _Fields) -> dict[str, SavedNumber]:
    def number(one: _Fields) -> SavedNumber:
        return SavedNumber(value=one.number("value"), error=one.number("error"))

    return {str(name): data.part(name, number) for name in data.content}


def _judgement(data: _Fields) -> SavedJudgement:
    pieces = data.parts("pieces", _judgement)
    decider = data.whole("decider")
    if pieces and (decider is None or not 0 <= decider < len(pieces)):
        wanted = f"a piece from 0 to {len(pieces) - 1}"
        raise data.wrong(data.path("decider"), decider, wanted)
    return SavedJudgement(
        name=data.text("name"),
        rule=data.text("rule"),
        outcome=data.one_of("outcome", Outcome),
        p_holds=data.given("p_holds"),
        p_fails=data.given("p_fails"),
        note=data.text("note"),
        value=data.number("value"),
        error=data.number("error"),
        low=data.number("low"),
        high=data.number("high"),
        n=data.whole("n"),
        region=data.maybe("region", _region),
        turns_at=data.number("turns_at"),
        decider=decider,
        pieces=pieces,
    )


def _region(data: _Fields) -> Region:
    low, high = data.number("low"), data.number("high")
    source = data.text("source")
    if source not in ("paper", "ours", "rounding"):
        raise data.wrong(data.path("source"), source, "paper, ours or rounding")
    try:
        return Region(
            low=-math.inf if low is None else low,
            high=math.inf if high is None else high,
            low_open=data.flag("low_open"),
            high_open=data.flag("high_open"),
            source=source,
            why=data.text("why"),
        )
    except ConfigError:
        raise data.wrong(data.way, dict(data.content), "a region") from None
