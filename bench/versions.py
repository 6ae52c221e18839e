"""What a result was obtained with."""

import platform
from importlib.metadata import version

import theodolite
from bench.peers import PEERS, version_of


def versions() -> dict[str, str]:
    """Return the versions of Python, of ours, of what it stands on and of peers."""
    return {
        "python": platform.python_version(),
        "theodolite": theodolite.__version__,  # which need not be installed
        **{name: version(name) for name in ("torch", "numpy", "scipy")},
        **{name: version_of(name) for name in PEERS.values()},
    }
