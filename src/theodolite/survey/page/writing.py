"""Write the page as a file, atomically."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from theodolite.runs import write_text

if TYPE_CHECKING:
    from ..comparing.comparison import Comparison
    from ..records.whole_survey import Survey
    from ..watching.course import Course

    Shown = Survey | Comparison | Course
else:
    Shown = Any


def write_page(shown: Shown, path: str | Path) -> Path:
    """Write a survey, a comparison or a watched training as one HTML file.

    Args:
        shown: The survey, comparison or watched training.
        path: File to write.

    Returns:
        The file written.

    Raises:
        RunError: It cannot be written there.
    """
    return write_text(path, page_of(shown))


def page_of(shown: Shown) -> str:
    """Return the page of a survey, a comparison or a watched training."""
    from ..comparing.comparison import Comparison
    from ..records.whole_survey import Survey
    from .survey_page import comparison_page, survey_page
    from .training_page import training_page

    if isinstance(shown, Survey):
        return survey_page(shown)
    if isinstance(shown, Comparison):
        return comparison_page(shown)
    return training_page(shown)
