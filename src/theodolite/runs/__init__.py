"""Run folders: a run is a config, its hash names a folder, finished cells stay.

A study makes a :class:`RunFolder` from a :class:`RunSpec`, hands its cells to
:func:`execute` and reads ``folder.rows()``. Killed at any moment, it resumes.
"""

from theodolite.runs.catalogue import (
    latest,
    latest_runs,
    read_summary,
    runs_in,
    write_summary,
)
from theodolite.runs.cells import Cell, cell_key, cell_name, describe
from theodolite.runs.execute import Execution, execute
from theodolite.runs.folder import RunFolder
from theodolite.runs.inprocess import InProcess
from theodolite.runs.launch import Launch
from theodolite.runs.pool import Pool
from theodolite.runs.progress import (
    LiveProgress,
    Progress,
    QuietProgress,
    progress_for,
)
from theodolite.runs.provenance import provenance, usable_cores
from theodolite.runs.ray_cluster import RayCluster
from theodolite.runs.ray_worker import Travelling
from theodolite.runs.spec import RunSpec
from theodolite.runs.task import Computed, Executor, Report, State, Task, Work
from theodolite.runs.tracking import Tracker, Tracking, tracker_for
from theodolite.runs.tracking_mlflow import MLflowTracker
from theodolite.runs.tracking_tensorboard import TensorBoardTracker
from theodolite.runs.tracking_wandb import WandbTracker

__all__ = [
    "Cell",
    "Computed",
    "Execution",
    "Executor",
    "InProcess",
    "Launch",
    "LiveProgress",
    "MLflowTracker",
    "Pool",
    "Progress",
    "QuietProgress",
    "RayCluster",
    "Report",
    "RunFolder",
    "RunSpec",
    "State",
    "Task",
    "TensorBoardTracker",
    "Tracker",
    "Tracking",
    "Travelling",
    "WandbTracker",
    "Work",
    "cell_key",
    "cell_name",
    "describe",
    "execute",
    "latest",
    "latest_runs",
    "progress_for",
    "provenance",
    "read_summary",
    "runs_in",
    "tracker_for",
    "usable_cores",
    "write_summary",
]
