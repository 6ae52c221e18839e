"""Papers as executable studies: predict, measure, draw, judge."""

from theodolite.studies.catalogue import (
    Entry,
    Paper,
    catalogue,
    find,
    papers,
    select,
)
from theodolite.studies.running import (
    Finished,
    last_summary,
    prepare_worker,
    redraw,
    run_study,
)
from theodolite.studies.study import SCALES, Drawing, Study, StudyConfig

__all__ = [
    "SCALES",
    "Drawing",
    "Entry",
    "Finished",
    "Paper",
    "Study",
    "StudyConfig",
    "catalogue",
    "find",
    "last_summary",
    "papers",
    "prepare_worker",
    "redraw",
    "run_study",
    "select",
]
