"""How much a survey computes, counted in gradients, and when it is aborted."""

import math
import re

from theodolite.core import ConfigError

# Gradients of the first batch, our choice: on "quick" every measure that rules read
# runs for networks of few outputs, on "normal" the largest eigenvalue converges for
# most networks, on "thorough" blocks have their own curvature.
EFFORTS = {"quick": 100.0, "normal": 400.0, "thorough": 2000.0}
_UNITS = {"": 1.0, "s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}
_WRITTEN = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*")


def gradients_of(effort: str | float) -> float:
    """Return an effort as a number of gradients.

    Example:
        >>> gradients_of("quick"), gradients_of("250"), gradients_of(30)
        (100.0, 250.0, 30.0)

    Raises:
        ConfigError: The effort is no known name and no number above 0.
    """
    if isinstance(effort, str) and effort in EFFORTS:
        return EFFORTS[effort]
    gradients = _amount(effort, {"": 1.0})
    if not 0 < gradients < math.inf:
        raise ConfigError(
            f"effort is {effort!r}, wanted how much to compute: pass 'quick', "
            "'normal', 'thorough' or a number of gradients above 0, such as 400"
        )
    return gradients


def seconds_of(limit: str | float | None) -> float:
    """Return a time limit in seconds, infinite for None.

    Example:
        >>> seconds_of("1min"), seconds_of("90 s"), seconds_of(2.5), seconds_of(None)
        (60.0, 90.0, 2.5, inf)

    Raises:
        ConfigError: The limit is not a time above 0.
    """
    if limit is None:
        return math.inf
    seconds = _amount(limit, _UNITS)
    if not 0 < seconds < math.inf:
        raise ConfigError(
            f"time_limit is {limit!r}, wanted a time above 0: pass '30s', '1min', '2h' "
            "or a number of seconds, or leave it out"
        )
    return seconds


def _amount(given: str | float, units: dict[str, float]) -> float:
    """Return a number with its unit, NaN if it is none."""
    if isinstance(given, str):
        match = _WRITTEN.fullmatch(given.lower())
        known = match is not None and match[2] in units
        return float(match[1]) * units[match[2]] if match and known else math.nan
    number = isinstance(given, int | float) and not isinstance(given, bool)
    return float(given) if number else math.nan
