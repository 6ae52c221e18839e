"""Settings of torch and Python that hold for a thread or for the whole process."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from theodolite.core import DelayInterrupt, Exclusive

from .randomness import random_state, restore_random_state

_C: Any = torch._C  # where setters stay allowed when users freeze the flags

_DEVICES = ("cpu", "cuda")


@contextmanager
def preserve_process() -> Iterator[None]:
    """Restore settings and random states of the process on exit.

    Grad mode, autocast, the default dtype, the number of threads, flags of determinism,
    warning filters, and the random states of torch, NumPy and Python. Other threads
    that measure wait meanwhile.

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
                restore_random_state(drawn)


class ProcessState:
    """Gradients, autocast, default dtype, threads, fused layers, determinism, warnings.

    To be read and restored in one thread, inside of ``core.Exclusive``. Inference mode
    is the only one that cannot be set: its contexts end by themselves.
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
            warnings.resetwarnings()  # and with them what was decided by them
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
        _coarse(),
        [_autocast(device) for device in _DEVICES],
        torch.is_autocast_cache_enabled(),
        torch.backends.mha.get_fastpath_enabled(),
    )


def _coarse() -> tuple[bool, bool] | None:
    """Return whether products may be coarser than float32, None where it is mixed."""
    try:
        return _C._get_cudnn_allow_tf32(), _C._get_cublas_allow_tf32()
    except RuntimeError:  # set by newer names, which these do not tell
        return None


def _set_coarse(flags: tuple[bool, bool] | None) -> None:
    if flags is not None:
        _C._set_cudnn_allow_tf32(flags[0])
        _C._set_cublas_allow_tf32(flags[1])


def _autocast(device: str) -> tuple[str, bool, torch.dtype]:
    enabled = torch.is_autocast_enabled(device)
    return device, enabled, torch.get_autocast_dtype(device)


def _set_autocast(states: list[tuple[str, bool, torch.dtype]]) -> None:
    for device, enabled, dtype in states:
        torch.set_autocast_enabled(device, enabled)
        torch.set_autocast_dtype(device, dtype)


# What sets each of the settings, in their order.
_SET: tuple[Any, ...] = (
    torch.set_grad_enabled,
    torch.set_default_dtype,
    torch.set_num_threads,
    torch.set_deterministic_debug_mode,
    _C._set_cudnn_enabled,
    _C._set_cudnn_benchmark,
    _C._set_cudnn_deterministic,
    _set_coarse,
    _set_autocast,
    torch.set_autocast_cache_enabled,
    torch.backends.mha.set_fastpath_enabled,
)
