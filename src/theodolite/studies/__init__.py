"""Papers as executable studies: predict, measure, draw, judge."""

from theodolite.studies.catalogue import (
    Entry,
    catalogue,
    find,
    guest_problems,
    in_file,
    papers,
    select,
)
from theodolite.studies.chosen_cells import ChosenCells
from theodolite.studies.committed import CommittedRun, pack
from theodolite.studies.judging import evidence, evidence_of, redraw
from theodolite.studies.paper import Explorer, Paper
from theodolite.studies.planning import Plan, plan_study, prepare_worker
from theodolite.studies.repair import Repaired, repair_runs
from theodolite.studies.running import Finished, last_summary, run_study
from theodolite.studies.small_studies import small_study
from theodolite.studies.story import Chapter, Finding
from theodolite.studies.study import (
    SCALES,
    Committed,
    Drawing,
    Exhibit,
    Study,
    StudyConfig,
)
from theodolite.studies.study_file import StudyFile

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
    "evidence",
    "evidence_of",
    "find",
    "guest_problems",
    "in_file",
    "last_summary",
    "pack",
    "papers",
    "plan_study",
    "prepare_worker",
    "redraw",
    "repair_runs",
    "run_study",
    "select",
    "small_study",
]
