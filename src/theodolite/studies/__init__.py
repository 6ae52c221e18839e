"""Papers as executable studies: predict, measure, draw, judge."""

from theodolite.studies.catalogue import (
    Entry,
    Paper,
    catalogue,
    find,
    papers,
    select,
)
from theodolite.studies.chosen_cells import ChosenCells
from theodolite.studies.running import (
    Finished,
    Plan,
    last_summary,
    plan_study,
    prepare_worker,
    redraw,
    run_study,
)
from theodolite.studies.story import Chapter, Finding
from theodolite.studies.study import SCALES, Committed, Drawing, Study, StudyConfig

__all__ = [
    "SCALES",
    "Chapter",
    "ChosenCells",
    "Committed",
    "Drawing",
    "Entry",
    "Finding",
    "Finished",
    "Paper",
    "Plan",
    "Study",
    "StudyConfig",
    "catalogue",
    "find",
    "last_summary",
    "papers",
    "plan_study",
    "prepare_worker",
    "redraw",
    "run_study",
    "select",
]
