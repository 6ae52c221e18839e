"""Public calls with one spoilt argument: an answer, or one sentence of ours."""

import contextlib
import copy
import inspect
import io
import math
import pickle
import signal
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import jaxtyping
import numpy as np
import pytest
import torch

from tests.recorded_calls import public, recorded
from theodolite import core, theory
from theodolite.core import ArgumentError, ConfigError, TheodoliteError

SPOILT = {
    "None": None, "text": "text", "object": object(), "NaN": math.nan,
    "infinity": math.inf, "negative": -1, "huge": 10**12, "fraction": 0.5,
    "empty": [], "mapping": {"a": 1}, "array": np.full((2, 3), math.nan),
    "tensor": torch.ones(2, 3, 1), "list": ["a", None],
}  # fmt: skip
# They start services or import large libraries.
NOT_CALLED = {
    "lightning_watch", "transformers_watch", "lightning_callback", "RayCluster",
    "transformers_callback", "MLflowTracker", "WandbTracker", "TensorBoardTracker",
    "Pool", "subject_of", "compare",
}  # fmt: skip
# A call that takes longer is stopped; one that never ends would show here.
SECONDS = 0.3
# An argument is spoilt in every sixth way, and its neighbours in the others.
TURNS = 6


class Endless(BaseException):
    """A call took too long."""


def stop(*_):
    raise Endless


@cache
def valid_calls():
    """Return each public name with its value and valid arguments."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calls = recorded(Path(mkdtemp()))
    return {
        name: (value, *calls[name])
        for name, value in public().items()
        if name in calls
        and name.rsplit(".", 1)[1] not in NOT_CALLED
        and not inspect.isabstract(value)
    }


def spoilt_calls(value, args, kwargs, turn):
    """Yield a name and arguments, of which one is spoilt."""
    given = inspect.signature(value).bind(*args, **kwargs)
    for place, parameter in enumerate(given.signature.parameters.values()):
        name = parameter.name
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        for kind, bad in list(SPOILT.items())[(turn + place) % TURNS :: TURNS]:
            if name == "jobs" and kind in ("None", "huge", "negative"):
                continue  # which start processes
            changed = copy.copy(given)
            changed.arguments = {**given.arguments, name: bad}
            yield f"{name}={kind}", changed


def outcome(value, given):
    """Return what came of a call: its result, or the exception."""
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    silent = contextlib.redirect_stdout(io.StringIO())
    try:
        with silent, contextlib.redirect_stderr(io.StringIO()):
            return value(*given.args, **given.kwargs)
    except (Exception, Endless) as error:
        return error
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


@pytest.fixture(autouse=True)
def as_users_call():
    """Leave out the checks that only tests have."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def limited(monkeypatch, tmp_path):
    """Stop calls that take long, in a folder where nothing matters."""
    monkeypatch.chdir(tmp_path)
    before = signal.signal(signal.SIGVTALRM, stop)
    yield
    signal.signal(signal.SIGVTALRM, before)


@pytest.mark.filterwarnings("ignore")
def test_spoilt_arguments_are_one_sentence(limited):
    ends, foreign = Counter(), []
    for turn, (name, call) in enumerate(valid_calls().items()):
        for which, given in spoilt_calls(*call, turn):
            error = outcome(call[0], given)
            if isinstance(error, TheodoliteError) and "\n" not in str(error):
                ends["ours"] += 1
            elif isinstance(error, Exception | Endless):
                ends["foreign"] += 1
                foreign.append(f"{name}({which}): {type(error).__name__}")
            else:
                ends["answered"] += 1
    share = ends["foreign"] / ends.total()
    print(f"\n{ends.total()} calls, {dict(ends)}: {share:.2%} foreign")
    assert ends.total() > 5_000
    assert ends["ours"] > 0.7 * ends.total()
    assert share < 0.015, "\n".join(foreign)


def test_most_public_names_are_called():
    known = {name for name, value in public().items() if not inspect.isabstract(value)}
    assert len(valid_calls()) > 0.9 * len(known), known - set(valid_calls())


NONSENSE = [
    (theory.margin_bound, (-1.0, 1.0), {"gamma": 1.0, "samples": 9, "delta": 0.1}),
    (theory.margin_bound, (0.1, -1.0), {"gamma": 1.0, "samples": 9, "delta": 0.1}),
    (theory.margin_bound, (0.1, math.nan), {"gamma": 1.0, "samples": 9, "delta": 0.1}),
    (theory.worst_growth, (10**9, 0.1, 0.1), {}),
    (theory.norm_equilibrium, ([1.0, 2.0], [1.0, 1.0], -1.0), {}),
    (theory.norm_multiplier, (math.nan, [1.0, 2.0], [1.0, 1.0]), {}),
    (theory.path_counts, (10**12, 3), {}),
    (theory.scalar_norm_sizes, (10**12,), {}),
    (core.share, ("a", -1, 10), {}),
    (core.share, ("a", 11, 10), {}),
]


@pytest.mark.parametrize(("function", "args", "settings"), NONSENSE)
def test_nonsense_gives_no_number(function, args, settings):
    with pytest.raises(ConfigError, match="pass"):
        function(*args, **settings)


def test_numbers_and_lists_of_other_libraries_are_accepted():
    plan = core.ShortcutBlueprint(width=3, depth=4)
    bound = {"gamma": np.float32(1), "samples": np.int64(9), "delta": np.array(0.1)}
    assert theory.margin_bound(np.array(0.1), 1, **bound) > 0
    assert core.known("a", torch.tensor(0.5)).value == 0.5
    assert core.column_major(((2, 2), [2])).shape == (6,)
    assert core.Region(low=np.float64(0), high=1).low == 0
    assert plan.with_(skip=np.bool_(False)).units == plan.units
    for wrong in (True, "3", None, 3j, np.array([3]), np.True_):
        with pytest.raises(ArgumentError, match=r"steps is .*: pass a whole number"):
            theory.worst_growth(wrong, 0.1, 0.1)


def test_public_functions_keep_name_signature_and_pickle():
    for name, value in public().items():
        assert pickle.loads(pickle.dumps(value)) is value, name
        if inspect.isfunction(value):
            assert inspect.signature(value) == inspect.signature(value.__wrapped__)
            assert value.__doc__ == value.__wrapped__.__doc__


def test_the_sentence_says_what_came_what_was_wanted_and_where_to_read():
    with pytest.raises(ArgumentError) as caught:
        core.ShortcutBlueprint(width="a", depth=2)
    assert str(caught.value) == (
        "width is 'a': pass a whole number (width: Dimension of input, output and "
        "every layer; see help(theodolite.core.ShortcutBlueprint))"
    )
