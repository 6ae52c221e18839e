"""Import the packages that ours is measured beside, or say why one is missing."""

import sys
import types
import warnings
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

PEERS = {
    "pyhessian": "PyHessian",
    "hessian_eigenthings": "hessian-eigenthings",
    "curvlinops": "curvlinops-for-pytorch",
    "backpack": "backpack-for-pytorch",
    "cockpit": "cockpit-for-pytorch",
    "weightwatcher": "weightwatcher",
    "torchinfo": "torchinfo",
    "torch_lr_finder": "torch-lr-finder",
    "neural_tangents": "neural-tangents",
    "jax": "jax",
}


class Missing(Exception):
    """A peer that could not be imported, with the reason."""


def peer(module: str) -> Any:
    """Import a peer by its module's name.

    Raises:
        Missing: Where it is not installed, or does not import.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if module == "neural_tangents":
                _mend_neural_tangents()
            return import_module(module)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise Missing(f"does not import ({reason})") from error


def peer_name(module: str) -> str:
    """Return the name of a peer with its version."""
    name = PEERS[module]
    return f"{name} {version_of(name)}"


def version_of(distribution: str) -> str:
    """Return the version of an installed package, or "absent"."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "absent"


def _mend_neural_tangents() -> None:
    """Let it import and use all its implementations on a jax newer than itself.

    Its experimental module wants TensorFlow, which nothing here uses; its structured
    derivatives, the fastest way it has, want two names where jax had them in 2023.
    """
    stand_in = types.ModuleType("neural_tangents.experimental")
    sys.modules.setdefault("neural_tangents.experimental", stand_in)
    jax = import_module("jax")
    ad = import_module("jax.interpreters.ad")
    for name, home in (
        ("source_info_util", import_module("jax._src.source_info_util")),
        ("config", jax.config),
    ):
        if not hasattr(ad, name):
            setattr(ad, name, home)
