"""Shared fixtures: everything is reseeded, nothing of the user's is read."""

import gc
import logging
import random
import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

# The same examples every time; machines under load are not a failure.
settings.register_profile(
    "theodolite",
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("theodolite")

# A shell that starts the tests in the background has Ctrl-C ignored.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The files that take longest, which start first: what is left for the end is short,
# and processes that share the files end together.
LONGEST = (
    "studies/test_running.py",
    "runs/test_ray.py",
    "survey/test_checks.py",
    "survey/test_known_failures.py",
    "survey/test_causes.py",
    "training/test_engines.py",
    "survey/test_planning.py",
    "test_readme.py",
    "instruments/test_team.py",
    "test_process_state.py",
    "survey/test_checks_in_use.py",
    "survey/test_kinds_of_training.py",
    "studies/test_committed_studies.py",
    "survey/test_checks_as_found.py",
    "report/test_browser.py",
    "core/verdicts/test_error_rates.py",
    "training/test_grid.py",
    "studies/test_plugins.py",
    "papers/littwin2016loss/test_committed_training.py",
    "test_path_length.py",
    "test_notebooks.py",
    "certificates/test_enclosures.py",
    "test_cli_streams.py",
    "training/test_transformers.py",
    "instruments/test_rounding_noise.py",
    "instruments/test_coverage.py",
    "instruments/test_algebra.py",
    "test_docs.py",
    "survey/test_checks_of_data.py",
    "test_fuzz.py",
    "test_arguments.py",
    "certificates/test_guaranteed_step.py",
    "instruments/test_peer_cases.py",
    "test_cli.py",
    "instruments/test_operators.py",
    "survey/test_user_step.py",
    "runs/test_tracking.py",
    "instruments/test_team_matrices.py",
    "instruments/test_sharp_errors.py",
    "surgery/test_every_style.py",
    "training/test_code_cache.py",
    "instruments/test_tangent_memory.py",
    "papers/li2016demystifying/test_final_losses_linear.py",
    "instruments/test_lockstep.py",
    "figures/test_readings.py",
    "runs/test_execute.py",
    "survey/test_watch_callbacks.py",
    "instruments/test_operators_preservation.py",
    "theory/test_dtypes.py",
    "papers/li2016demystifying/test_along_training.py",
    "instruments/test_norm_modes.py",
    "data/test_fuzz.py",
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


@pytest.fixture(scope="session")
def quick_root(tmp_path_factory, worker_id):
    """Folder for runs at QUICK; processes of the tests share it."""
    base = tmp_path_factory.getbasetemp()
    return (base if worker_id == "master" else base.parent) / "quick"


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
