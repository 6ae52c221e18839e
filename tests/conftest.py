"""Shared fixtures: everything is reseeded, nothing of the user's is read."""

import gc
import logging
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

# The same examples every time; machines under load are not a failure.
settings.register_profile("theodolite", deadline=None, derandomize=True)
settings.load_profile("theodolite")

# The files that take longest, which start first: what is left for the end is short,
# and processes that share the files end together.
LONGEST = (
    "runs/test_ray.py",
    "studies/test_running.py",
    "training/test_engines.py",
    "instruments/test_coverage.py",
    "report/test_browser.py",
    "training/test_grid.py",
    "test_cli.py",
    "studies/test_committed_studies.py",
    "survey/test_page_browser.py",
    "instruments/test_graph_noise.py",
    "instruments/test_tangent_kernel.py",
    "test_cli_run.py",
    "instruments/test_operators.py",
    "survey/test_sick_bay.py",
    "core/verdicts/test_error_rates.py",
    "test_cli_streams.py",
    "instruments/test_preservation.py",
    "survey/test_planning.py",
    "instruments/test_team.py",
    "training/test_stacked.py",
    "studies/test_guests.py",
    "test_fuzz.py",
    "instruments/test_operators_preservation.py",
    "test_docs.py",
    "instruments/test_fisher.py",
    "instruments/test_singular_values.py",
    "training/test_code_cache.py",
    "runs/test_kill.py",
    "survey/test_subjects.py",
    "data/test_fuzz.py",
    "runs/test_tracking.py",
)


def pytest_collection_modifyitems(items):
    """Put the files that take longest first, and leave the order of their tests."""
    here = Path(__file__).parent
    rank = {here / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path, len(rank)))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep the collector from what is found and imported, which lives to the end.

    What libraries load later lives as long, and is looked through less often.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(2_000, 10, 50)
        gc.enable()


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Small matrices on a busy machine: more threads only wait for one another."""
    import torch

    torch.set_num_threads(1)
    _join_loggers("torch")
    with threadpool_limits(1):
        yield


def _join_loggers(library):
    """Let a library's loggers hand on what they are told.

    To each that does not, forty of torch's, pytest hangs its handlers and takes them
    off again six times a test.
    """
    for name, logger in logging.root.manager.loggerDict.items():
        if name.partition(".")[0] == library and isinstance(logger, logging.Logger):
            logger.propagate = True


@pytest.fixture(autouse=True)
def reseed():
    """Start every test from the same random state."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 — the global state is what tests must not move
    import torch

    # As torch.manual_seed does, which also notes for devices that are not there from
    # where it was called, and looks up each line of that.
    torch.default_generator.manual_seed(0)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(0)
