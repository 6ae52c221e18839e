r"""The number behind a verdict, with its uncertainty.

Every kind answers two questions: where do its bounds lie at a level $\alpha$, each
wrong with probability at most $\alpha$; and what is the p-value that it lies beyond a
point. The two agree: the lower bound at $\alpha$ passes a point exactly if the
p-value there is at most $\alpha$.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..errors import ConfigError

# How far the search goes for a number of networks that would decide.
MOST_NETWORKS = 100_000
# The note of a number that was never measured.
NO_ROWS = "there are no such rows"


@dataclass(frozen=True, kw_only=True)
class Quantity(ABC):
    """A number with its uncertainty.

    Attributes:
        name: What it is, in words.
        value: Best estimate.
        slack: Bound on errors that no number of networks reduces: the rows' own
            errors, the resolution of a grid, rounding.
        note: What else a reader must know, such as why the slack is infinite.
    """

    name: str
    value: float
    slack: float = 0.0
    note: str = ""

    @property
    @abstractmethod
    def random(self) -> bool:
        """Whether the number is random."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of networks it comes from, or 0."""

    @property
    @abstractmethod
    def error(self) -> float:
        """One standard error plus the slack."""

    @abstractmethod
    def p_above(self, point: float, *, strict: bool = True) -> float:
        """How probable numbers like these are if the truth is at most the point."""

    @abstractmethod
    def p_below(self, point: float, *, strict: bool = True) -> float:
        """How probable numbers like these are if the truth is at least the point."""

    @abstractmethod
    def lower(self, alpha: float) -> float:
        """A bound that exceeds the truth with probability at most ``alpha``."""

    @abstractmethod
    def upper(self, alpha: float) -> float:
        """A bound that the truth exceeds with probability at most ``alpha``."""

    def needed(self, low: float, high: float, alpha: float) -> int | None:
        """Networks that would decide a region at the present value and spread.

        None where no number of them would, or where it cannot be said.
        """
        return None

    @property
    def missing(self) -> bool:
        """Whether there are no rows to compute it from."""
        return self.note == NO_ROWS


@dataclass(frozen=True, kw_only=True)
class Known(Quantity):
    """A number that is not random: computed, up to a bound on its error.

    Example:
        >>> gap = Known(name="largest gap", value=1e-14, slack=1e-15)
        >>> gap.upper(0.05) < 1e-10, gap.random
        (True, False)
    """

    @property
    def random(self) -> bool:
        """False: the number is not random."""
        return False

    @property
    def n(self) -> int:
        """0: it comes from no networks."""
        return 0

    @property
    def error(self) -> float:
        """The bound on its error."""
        return self.slack

    def p_above(self, point: float, *, strict: bool = True) -> float:
        """0 if the whole interval is above the point, else 1."""
        low = self.lower(0.0)
        return 0.0 if low > point or (low == point and not strict) else 1.0

    def p_below(self, point: float, *, strict: bool = True) -> float:
        """0 if the whole interval is below the point, else 1."""
        high = self.upper(0.0)
        return 0.0 if high < point or (high == point and not strict) else 1.0

    def lower(self, alpha: float) -> float:
        """The value less its error."""
        return -math.inf if math.isnan(self.value) else self.value - self.slack

    def upper(self, alpha: float) -> float:
        """The value plus its error."""
        return math.inf if math.isnan(self.value) else self.value + self.slack


@dataclass(frozen=True, kw_only=True)
class Sampled(Quantity):
    """A mean over networks, or a difference or slope of means, with Student's t.

    Networks that agree to the last digit have no spread, as the t test needs, and may
    agree by chance, as counts do. A sign test then gives the p-value, so that two or
    four networks prove nothing.

    Attributes:
        stderr: Standard error over networks; NaN for fewer than two.
        freedom: Degrees of freedom of the standard error.
        networks: How many there are, in the smallest group.

    Example:
        >>> loss = sampled("loss", [1.0, 2.0, 3.0])
        >>> round(loss.lower(0.025), 3), loss.n
        (-0.484, 3)
    """

    stderr: float
    freedom: float
    networks: int

    @property
    def random(self) -> bool:
        """Chance has a part in it."""
        return True

    @property
    def n(self) -> int:
        """Networks behind it."""
        return self.networks

    @property
    def error(self) -> float:
        """One standard error plus the slack."""
        return self.stderr + self.slack

    def p_above(self, point: float, *, strict: bool = True) -> float:
        """Student's p-value that the truth is above."""
        return self._p(self.value - self.slack - point, strict)

    def p_below(self, point: float, *, strict: bool = True) -> float:
        """Student's p-value that the truth is below."""
        return self._p(point - self.slack - self.value, strict)

    def lower(self, alpha: float) -> float:
        """Student's lower bound, less the slack."""
        reach = self._reach(alpha)
        return -math.inf if math.isnan(reach) else self.value - reach

    def upper(self, alpha: float) -> float:
        """Student's upper bound, plus the slack."""
        reach = self._reach(alpha)
        return math.inf if math.isnan(reach) else self.value + reach

    def needed(self, low: float, high: float, alpha: float) -> int | None:
        """Networks that would decide, if value and spread stay as they are."""
        from scipy.special import stdtrit

        signs = math.ceil(-math.log2(alpha))  # number that a sign test needs
        if self.stderr == 0 and not self.slack:
            return signs
        edges = [abs(self.value - end) for end in (low, high) if math.isfinite(end)]
        room = min(edges) - self.slack
        if not room > 0 or not math.isfinite(self.stderr):
            return None
        if self.stderr == 0:
            return signs
        spread = self.stderr * math.sqrt(self.networks)
        tries = np.unique(np.geomspace(2, MOST_NETWORKS, 400).astype(int))
        reach = -stdtrit(tries - 1, alpha) * spread / np.sqrt(tries)
        enough = tries[reach < room]
        return int(enough[0]) if len(enough) else None

    def _p(self, ahead: float, strict: bool) -> float:
        from scipy.special import stdtr

        if math.isnan(ahead) or not self._known:
            return 1.0
        if self.stderr == 0:
            there = ahead > 0 or (ahead == 0 and not strict)
            return 0.5**self.networks if there else 1.0
        return float(stdtr(self.freedom, -ahead / self.stderr))

    def _reach(self, alpha: float) -> float:
        from scipy.special import stdtrit

        if not self._known:
            return math.nan
        if self.stderr == 0:
            return self.slack if 0.5**self.networks <= alpha else math.inf
        return -float(stdtrit(self.freedom, alpha)) * self.stderr + self.slack

    @property
    def _known(self) -> bool:
        finite = math.isfinite(self.value) and math.isfinite(self.stderr)
        return finite and self.freedom > 0


@dataclass(frozen=True, kw_only=True)
class Share(Quantity):
    """A share of independent cases, by Clopper and Pearson.

    Attributes:
        count: Cases that count as a success.
        cases: All cases.

    Example:
        >>> escaped = share("escaped", 10, 10)
        >>> round(escaped.lower(0.05), 3)
        0.741
    """

    count: int
    cases: int

    @property
    def random(self) -> bool:
        """Chance has a part in it."""
        return True

    @property
    def n(self) -> int:
        """Cases behind it."""
        return self.cases

    @property
    def error(self) -> float:
        """One standard error plus the slack."""
        spread = self.value * (1 - self.value) / self.cases if self.cases else math.nan
        return math.sqrt(spread) + self.slack

    def p_above(self, point: float, *, strict: bool = True) -> float:
        """Binomial p-value that the truth is above."""
        from scipy.special import bdtrc

        chance = point + self.slack
        if chance < 0 or (chance == 0 and not strict):  # no share is below 0
            return 0.0 if self.cases else 1.0
        if not self.cases or not self.count or chance >= 1:
            return 1.0
        return float(bdtrc(self.count - 1, self.cases, chance))

    def p_below(self, point: float, *, strict: bool = True) -> float:
        """Binomial p-value that the truth is below."""
        from scipy.special import bdtr

        chance = point - self.slack
        if chance > 1 or (chance == 1 and not strict):  # no share is above 1
            return 0.0 if self.cases else 1.0
        if not self.cases or self.count == self.cases or chance <= 0:
            return 1.0
        return float(bdtr(self.count, self.cases, chance))

    def needed(self, low: float, high: float, alpha: float) -> int | None:
        """Cases that would decide, if the share stays as it is."""
        edges = [abs(self.value - end) for end in (low, high) if math.isfinite(end)]
        room = min(edges) - self.slack
        if not room > 0 or not self.cases:
            return None
        for factor in range(2, MOST_NETWORKS // self.cases):
            more = replace(self, count=self.count * factor, cases=self.cases * factor)
            reach = max(more.upper(alpha) - self.value, self.value - more.lower(alpha))
            if reach < room:
                return more.cases
        return None

    def lower(self, alpha: float) -> float:
        """Exact lower bound, less the slack."""
        from scipy.special import betaincinv

        if not self.count:
            return 0.0 if self.cases else -math.inf
        rest = self.cases - self.count + 1
        return float(betaincinv(self.count, rest, alpha)) - self.slack

    def upper(self, alpha: float) -> float:
        """Exact upper bound, plus the slack."""
        from scipy.special import betaincinv

        if self.count == self.cases:
            return 1.0 if self.cases else math.inf
        rest = self.cases - self.count
        return float(betaincinv(self.count + 1, rest, 1 - alpha)) + self.slack


def known(name: str, value: float, error: float = 0.0, note: str = "") -> Known:
    """A number computed up to a bound on its error."""
    return Known(name=name, value=float(value), slack=float(error), note=note)


def share(name: str, count: int, cases: int, note: str = "") -> Share:
    """A share of independent cases."""
    if not 0 <= count <= cases:
        raise ConfigError(f"{count} of {cases} were counted: pass 0 to {cases}")
    value = count / cases if cases else math.nan
    note = note or ("" if cases else NO_ROWS)
    return Share(name=name, value=value, count=count, cases=cases, note=note)


def sampled(
    name: str,
    values: Sequence[float] | np.ndarray,
    errors: Sequence[float] | np.ndarray | float = 0.0,
    note: str = "",
) -> Sampled:
    """Return the mean over networks; their own errors are bounds and add to it.

    Fewer than two networks, or one without a value, leave the mean open.
    """
    sample = np.asarray(values, dtype=np.float64).ravel()
    bounds = np.broadcast_to(np.asarray(errors, dtype=np.float64), sample.shape)
    lost = int(np.count_nonzero(~np.isfinite(sample)))
    if sample.size == 0 or lost:
        why = f"{lost} of {sample.size} values are missing" if lost else NO_ROWS
        return _open(name, note or why, sample.size)
    mean = float(sample.mean())
    if sample.size < 2:
        why = note or "one network has no spread: run at least two"
        return replace(_open(name, why, 1), value=mean)
    spread = float(sample.std(ddof=1))
    if spread <= 4 * np.finfo(float).eps * float(np.abs(sample).max()):
        spread = 0.0  # equal to rounding
        note = note or f"{sample.size} networks agree exactly, perhaps by chance"
    return Sampled(
        name=name,
        value=mean,
        slack=float(np.mean(np.abs(bounds))),
        note=note,
        stderr=spread / math.sqrt(sample.size),
        freedom=sample.size - 1,
        networks=sample.size,
    )


def combined(
    name: str, parts: Sequence[Sampled], weights: Sequence[float], note: str = ""
) -> Sampled:
    """Return a weighted sum of means of independent groups, by Welch.

    Satterthwaite's degrees of freedom; the slacks add up.
    """
    weight = np.asarray(weights, dtype=np.float64)
    errors = weight * np.array([part.stderr for part in parts])
    variance = float(np.sum(errors**2))
    freedom = np.array([part.freedom for part in parts])
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(errors == 0, 0.0, errors**4 / freedom)
    total = float(np.sum(each))
    reasons = [part.note for part in parts if not math.isfinite(part.error)]
    return Sampled(
        name=name,
        value=float(weight @ [part.value for part in parts]),
        slack=float(np.abs(weight) @ [part.slack for part in parts]),
        note=note or next(filter(None, reasons), ""),
        stderr=math.sqrt(variance),
        freedom=variance**2 / total if total else float(freedom.min()),
        networks=min(part.networks for part in parts),
    )


def _open(name: str, why: str, networks: int) -> Sampled:
    return Sampled(
        name=name,
        value=math.nan,
        note=why,
        stderr=math.nan,
        freedom=0,
        networks=networks,
    )
