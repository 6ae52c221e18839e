"""Papers as executable studies: predict, measure, draw, judge."""

from .catalogue import (
    Entry,
    catalogue,
    find,
    papers,
    plugin_problems,
    select,
    studies_in_file,
)
from .chosen_cells import ChosenCells
from .committed import CommittedRun, pack
from .judging import evidence_of, redraw, with_committed
from .paper import Chapter, Explorer, Finding, Paper
from .planning import Plan, plan_study, prepare_worker
from .repair import Repaired, repair_runs
from .running import Finished, last_summary, run_study
from .small_studies import small_study
from .study import SCALES, Committed, Drawing, Exhibit, Study, StudyConfig, gather_study
from .study_file import StudyFile

__all__ = [
    "SCALES",
    "Chapter",
    "ChosenCells",
    "Committed",
    "CommittedRun",
    "Drawing",
    "Entry",
    "Exhibit",
    "Explorer",
    "Finding",
    "Finished",
    "Paper",
    "Plan",
    "Repaired",
    "Study",
    "StudyConfig",
    "StudyFile",
    "catalogue",
    "evidence_of",
    "find",
    "gather_study",
    "last_summary",
    "pack",
    "papers",
    "plan_study",
    "plugin_problems",
    "prepare_worker",
    "redraw",
    "repair_runs",
    "run_study",
    "select",
    "small_study",
    "studies_in_file",
    "with_committed",
]
