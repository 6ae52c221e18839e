"""The process while something is measured: settings, random states, progress.

Settings and random states are restored, draws of a model noticed, products counted.
"""

import random
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import wraps
from itertools import product
from typing import Any, Literal, ParamSpec, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from theodolite.core import (
    ConfigError,
    DelayInterrupt,
    Exclusive,
    MeasurementError,
    NormMode,
    safe_point,
)

P = ParamSpec("P")
R = TypeVar("R")

_C: Any = torch._C  # where setters stay allowed when users freeze the flags

_DEVICES = ("cpu", "cuda")
_PRODUCTS = tuple(product(("cuda", "mkldnn"), ("matmul", "conv", "rnn")))
_Precision = tuple[str | None, bool | None, list[str]]


@contextmanager
def preserve_process(*, draws: bool = True) -> Iterator[None]:
    """Restore settings and random states of the process on exit.

    These are grad mode, autocast, the default dtype, the number of threads, flags of
    determinism, the precision of float32 products, warning filters, and the random
    states of torch, NumPy and Python. Other threads that measure wait meanwhile.

    Args:
        draws: Restore the random states too.

    Example:
        >>> with preserve_process():
        ...     torch.set_default_dtype(torch.float64)
        >>> torch.get_default_dtype()
        torch.float32
    """
    with Exclusive(interruptible=True):
        settings, drawn = ProcessState(), random_state()
        try:
            yield
        finally:
            with DelayInterrupt():
                settings.restore()
                if draws:
                    restore_random_state(drawn)


# The count that is shown, and what was chosen by ``progress``.
COUNT: ContextVar[Any] = ContextVar("count", default=None)
SETTING: ContextVar[Any] = ContextVar("setting", default=None)


@contextmanager
def measuring(what: str = "", *, unit: str = "products") -> Iterator[None]:
    """Let no other thread measure meanwhile, and leave the caller's inference mode.

    Tensors made in that mode have no gradient, and torch refuses later writes to them.
    It also works as a decorator.

    Args:
        what: Name of an instrument, under which its progress is shown.
        unit: What it counts.

    Example:
        >>> with torch.inference_mode(), measuring():
        ...     torch.ones(1).is_inference()
        False
    """
    inference, chosen = torch.is_inference_mode_enabled(), SETTING.get()
    watched = is_watched() if chosen is None else chosen.tell is not None
    with (
        Exclusive(),
        torch.inference_mode(False) if inference else nullcontext(),
        _shown(what, unit) if what and (watched or COUNT.get()) else nullcontext(),
    ):
        yield


def _shown(what: str, unit: str) -> AbstractContextManager[None]:
    from .progress_line import show_progress

    return show_progress(what, unit=unit)


def with_progress(unit: str = "products") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make an instrument show its progress under its name, and run alone."""

    def decorate(instrument: Callable[P, R]) -> Callable[P, R]:
        @wraps(instrument)
        def measure(*args: P.args, **kwargs: P.kwargs) -> R:
            with measuring(instrument.__name__, unit=unit):
                return instrument(*args, **kwargs)

        return measure

    return decorate


def counted(number: int = 1, *, unit: str = "products") -> None:
    """Count products, or another unit: work may stop between two of them.

    It costs next to nothing where no progress is shown.
    """
    safe_point()
    own = COUNT.get()
    if own is not None and own.unit == unit:
        own.count(number)


def expected(total: int, *, bounded: bool = False) -> None:
    """Set the total number of products; only the outermost instrument does so."""
    own = COUNT.get()
    if own is None or own.unit != "products" or own.depth > 1:
        return
    if own.total is None:
        own.total, own.bounded = int(total), bounded


def is_watched() -> bool:
    """Whether standard error is a terminal, or this a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if type(shell).__name__ == "ZMQInteractiveShell":
        return True
    try:
        return bool(sys.stderr.isatty())
    except (AttributeError, ValueError):
        return False


@contextmanager
def full_precision() -> Iterator[None]:
    """Compute float32 products in float32 inside, also where TF32 or bfloat16 is on."""
    with Exclusive(interruptible=True):
        before = matmul, cudnn, _ = _precision()
        full = ["ieee"] * len(_PRODUCTS)
        try:
            _set_precision(
                (
                    None if matmul is None else "highest",
                    None if cudnn is None else False,
                    full,
                )
            )
            yield
        finally:
            with DelayInterrupt():
                _set_precision(before)


class ProcessState:
    """Settings of torch and Python as they are now, to be restored later.

    Read and restore them in one thread, inside of ``core.Exclusive``. Inference mode is
    not among them: only its own contexts can change it, and these end by themselves.
    """

    def __init__(self) -> None:
        self._settings = _settings()
        self._list: Any = warnings.filters
        self._filters = list(self._list)

    def restore(self) -> None:
        """Set again what has changed."""
        for now, then, write in zip(_settings(), self._settings, _SET, strict=True):
            if now != then:
                write(then)
        held: Any = warnings
        if held.filters is not self._list or self._list != self._filters:
            held.filters = self._list
            warnings.resetwarnings()  # and all that depends on them
            self._list[:] = self._filters


def _settings() -> tuple[Any, ...]:
    return (
        torch.is_grad_enabled(),
        torch.get_default_dtype(),
        torch.get_num_threads(),
        torch.get_deterministic_debug_mode(),
        _C._get_cudnn_enabled(),
        _C._get_cudnn_benchmark(),
        _C._get_cudnn_deterministic(),
        _precision(),
        [_autocast(device) for device in _DEVICES],
        torch.is_autocast_cache_enabled(),
        torch.backends.mha.get_fastpath_enabled(),
        (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
    )


def _precision() -> _Precision:
    """Return the precision of float32 products, by torch's older and newer names.

    An older name gives None if torch refuses it after a newer was used.
    """
    older: list[Any] = []
    for read in (_C._get_float32_matmul_precision, _C._get_cudnn_allow_tf32):
        try:
            older.append(read())
        except RuntimeError:
            older.append(None)
    return *older, [_C._get_fp32_precision_getter(*each) for each in _PRODUCTS]


def _set_precision(precision: _Precision) -> None:
    """Set the older names first, since they also set the newer ones."""
    matmul, cudnn, newer = precision
    if matmul is not None:
        _C._set_float32_matmul_precision(matmul)
    if cudnn is not None:
        _C._set_cudnn_allow_tf32(cudnn)
    for each, value in zip(_PRODUCTS, newer, strict=True):
        _C._set_fp32_precision_setter(*each, value)


def _autocast(device: str) -> tuple[str, bool, torch.dtype]:
    enabled = torch.is_autocast_enabled(device)
    return device, enabled, torch.get_autocast_dtype(device)


def _set_autocast(states: list[tuple[str, bool, torch.dtype]]) -> None:
    for device, enabled, dtype in states:
        torch.set_autocast_enabled(device, enabled)
        torch.set_autocast_dtype(device, dtype)


# The setter of each setting, in order.
_SET: tuple[Any, ...] = (
    torch.set_grad_enabled,
    torch.set_default_dtype,
    torch.set_num_threads,
    torch.set_deterministic_debug_mode,
    _C._set_cudnn_enabled,
    _C._set_cudnn_benchmark,
    _C._set_cudnn_deterministic,
    _set_precision,
    _set_autocast,
    torch.set_autocast_cache_enabled,
    torch.backends.mha.set_fastpath_enabled,
    lambda anomaly: torch.set_anomaly_enabled(*anomaly),
)


Randomness = Literal["refuse", "fixed"]


def reseed(seed: int) -> None:
    """Seed torch, NumPy and Python; the caller restores their states."""
    if not 0 <= seed < 2**63:
        raise ConfigError(f"seed {seed} is not a whole number of 63 bits: try 0")
    # Not torch.manual_seed, which would also seed CUDA on its first use.
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 — the global state a model may use
    random.seed(seed)


def random_state() -> dict[str, Any]:
    """Return the states of torch, NumPy and Python's generators."""
    cuda = torch.cuda.is_available() and torch.cuda.is_initialized()
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if cuda else None,
        "numpy": np.random.get_state(),  # noqa: NPY002 — the global state of others
        "python": random.getstate(),
    }


def restore_random_state(state: dict[str, Any]) -> None:
    """Restore the states that :func:`random_state` returned."""
    torch.set_rng_state(state["torch"])
    if state["cuda"] is not None:
        torch.cuda.set_rng_state_all(state["cuda"])
    np.random.set_state(state["numpy"])  # noqa: NPY002
    random.setstate(state["python"])


def generator_state(generator: Any) -> Any:
    """Return the state of one generator of torch, NumPy or Python."""
    if isinstance(generator, torch.Generator):
        return generator.get_state()
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    if isinstance(generator, np.random.RandomState):
        return generator.get_state()
    return generator.getstate()


def restore_generator(generator: Any, state: Any) -> None:
    """Restore the state that :func:`generator_state` returned."""
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    elif isinstance(generator, random.Random):
        generator.setstate(state)
    else:
        generator.set_state(state)


class Draws:
    """Detects whether random numbers were drawn since it was made."""

    def __init__(self) -> None:
        self._before = random_state()

    def happened(self) -> bool:
        """Return whether the states differ from those at the start."""
        return _plain(self._before) != _plain(random_state())


def check_repeats(first: Tensor, second: Tensor) -> None:
    """Refuse a model if two passes from the same state and seed differ."""
    same = first.shape == second.shape
    if same and first.numel():
        # Kernels that add in any order differ by rounding, which is not randomness.
        limit = 1e4 * torch.finfo(first.dtype).eps * float(first.abs().max())
        same = float((first - second).abs().max()) <= limit
    if not same:
        raise MeasurementError(
            "two passes over the same batch from the same seed differ, so the model "
            "keeps a state, or draws numbers that no seed fixes: switch that off, for "
            "instance with eval()"
        )


def _plain(state: dict[str, Any]) -> list[Any]:
    cuda = [part.tolist() for part in state["cuda"] or ()]
    kind, keys, *rest = state["numpy"]
    numpy = [kind, keys.tolist(), *rest]
    return [state["torch"].tolist(), cuda, numpy, state["python"]]


def settle_dropout(model: nn.Module, mode: NormMode) -> None:
    """Switch dropout off under ``EVAL``, as at inference; refuse it elsewhere.

    Only where the model is left as found on the way out.
    """
    if mode is not NormMode.EVAL:
        return refuse_dropout(model)
    for module in model.modules():
        if isinstance(module, _DropoutNd):
            module.train(False)
    return None


def refuse_dropout(model: nn.Module) -> None:
    """Refuse dropout that is switched on, by its name."""
    for name, module in model.named_modules():
        if isinstance(module, _DropoutNd) and module.training and module.p > 0:
            raise MeasurementError(
                f"dropout {name!r} is active, so the loss is random: call eval() on "
                "it, take norm mode 'eval', or fix the masks where randomness='fixed' "
                "is an argument"
            )
