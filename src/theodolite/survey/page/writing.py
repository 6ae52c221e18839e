"""The page of a survey, a comparison or a watched training, as one HTML file."""

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
    """Write the page atomically, and return its path.

    Raises:
        RunError: It cannot be written there.
    """
    return write_text(path, page_of(shown))


def page_of(shown: Shown) -> str:
    """Return the page as text."""
    from .survey_page import comparison_page, survey_page
    from .training_page import training_page

    kinds = {"Survey": survey_page, "Comparison": comparison_page}
    return kinds.get(type(shown).__name__, training_page)(shown)
