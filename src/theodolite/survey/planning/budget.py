"""A budget of seconds, as people write it."""

import math
import re

from theodolite.core import ConfigError

_UNITS = {"": 1.0, "s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}
_WRITTEN = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*")


def seconds_of(budget: str | float) -> float:
    """Return a budget in seconds.

    Example:
        >>> seconds_of("1min"), seconds_of("90 s"), seconds_of(2.5)
        (60.0, 90.0, 2.5)

    Raises:
        ConfigError: The budget is not a time above 0.
    """
    seconds = math.nan
    if isinstance(budget, str):
        match = _WRITTEN.fullmatch(budget.lower())
        if match and match[2] in _UNITS:
            seconds = float(match[1]) * _UNITS[match[2]]
    elif isinstance(budget, int | float) and not isinstance(budget, bool):
        seconds = float(budget)
    if not 0 < seconds < math.inf:
        raise ConfigError(
            f"budget is {budget!r}, wanted a time above 0: pass '30s', '1min', '2h' or "
            "a number of seconds"
        )
    return seconds
