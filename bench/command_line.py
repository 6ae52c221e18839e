"""What a command line asks for, or one sentence that ends the command."""

import os
from collections.abc import Iterable
from pathlib import Path

import torch

from theodolite.core import unknown_name


def device(suite: str, name: str, *, otherwise: str) -> torch.device:
    """Return a device that is here.

    Args:
        suite: Who asks.
        name: As it was given.
        otherwise: What to do where no GPU is.
    """
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise SystemExit(
            f"bench.{suite} was given the device {name!r}: pass --device cuda or cpu"
        )
    if device.type == "cpu":
        return device
    if not torch.cuda.is_available():
        raise SystemExit(
            f"bench.{suite} wants a CUDA device and none is here: {otherwise}"
        )
    if (device.index or 0) >= torch.cuda.device_count():
        raise SystemExit(
            f"bench.{suite} was given the device {name!r} and there are "
            f"{torch.cuda.device_count()}: they are counted from cuda:0"
        )
    return device


def count(option: str, value: int | None, least: int = 1) -> None:
    """Refuse a count that is too small; None is one that was not given."""
    if value is not None and value < least:
        raise SystemExit(f"{option} is {value}: pass a whole number from {least} up")


def known(kind: str, name: str, names: Iterable[str]) -> None:
    """Refuse a name that there is not."""
    names = list(names)
    if name not in names:
        raise SystemExit(str(unknown_name(kind, name, names)))


def folder(path: Path) -> Path:
    """Make a folder that can be written to."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SystemExit(_unwritable(path, error.strerror or str(error))) from None
    if not os.access(path, os.W_OK):
        raise SystemExit(_unwritable(path, "it cannot be written to"))
    return path


def file(path: Path) -> Path:
    """Return a place for a file, in a folder that is there or is made."""
    if path.is_dir():
        raise SystemExit(_unwritable(path, "it is a folder, and a file is wanted"))
    folder(path.parent)
    return path


def _unwritable(path: Path, reason: str) -> str:
    return f"{str(path)!r} is no place for results ({reason}): pass another one"
