"""A study in ten lines: a function of a seed, and claims about its numbers."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from theodolite.core import Claim, ConfigError, Reading, Rows

from .study import SCALES, Study, StudyConfig

# Trials of the three scales; 16 give a mean to a quarter of the spread.
_TRIALS = (16, 64, 256)

Measured = Mapping[str, Any] | Reading | Rows


def small_study(
    measure: Callable[[int], Measured],
    *claims: Claim,
    title: str | None = None,
    summary: str = "",
    trials: tuple[int, int, int] = _TRIALS,
    revision: int = 1,
) -> Study:
    """Return a study whose cells are trials of one function, without predictions.

    Each claim states its region, such as ``inside(mean(measured("top")),
    near(2, 0.1, …))``. The study runs and is judged and reported like any other.

    Args:
        measure: Takes a seed; returns numbers by name, a reading, or rows. It imports
            torch, if it needs it, inside.
        claims: Claims to judge.
        title: Its subject, in one line; by default the first line of the function's
            docstring, or its name.
        summary: The claim in one sentence; by default the claims' statements.
        trials: Seeds at the scales smoke, quick and paper.
        revision: Raised when a change of code changes values.

    Example:
        >>> from theodolite.core import above, inside, mean, measured
        >>> def square(seed):
        ...     return {"square": float(seed**2)}
        >>> test = inside(mean(measured("square")), above(0))
        >>> words = {"name": "up", "place": "School", "statement": "It is positive."}
        >>> study = small_study(square, Claim(**words, test=test, rival="it is not"))
        >>> study.title, study.measure(None, {"trial": 3}).values()
        ('Square', array([9.]))
    """
    name = getattr(measure, "__name__", "measure").replace("_", " ").capitalize()
    first_line = (measure.__doc__ or name).strip().splitlines()[0].rstrip(".")
    configs = [StudyConfig(n_seeds=count) for count in trials]
    return Study(
        title=title or first_line,
        summary=summary or " ".join(claim.statement for claim in claims) or first_line,
        presets=dict(zip(SCALES, configs, strict=True)),
        cells=_trials,
        measure=partial(_measured, measure),
        claims=claims,
        revision=revision,
    )


def _trials(config: Any) -> list[dict[str, Any]]:
    return [{"trial": seed} for seed in config.seeds]


def _measured(
    measure: Callable[[int], Measured], config: Any, cell: Mapping[str, Any]
) -> Rows:
    result = measure(cell["trial"])
    if isinstance(result, Reading):
        return result.rows()
    if isinstance(result, Rows):
        return result
    if not isinstance(result, Mapping):
        raise ConfigError(
            f"the study's function returned a {type(result).__name__}: return numbers "
            "by name, such as {'top': 2.0}, a reading or rows"
        )
    return Rows(
        {"quantity": name, "value": float(value), "error": 0.0}
        for name, value in result.items()
    )
