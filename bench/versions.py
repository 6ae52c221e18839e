"""What a result was obtained with."""

import platform
from importlib.metadata import version

from bench.peers import PEERS, version_of


def versions() -> dict[str, str]:
    """Return the versions of Python, of ours, of what it stands on and of peers."""
    own = ("theodolite", "torch", "numpy", "scipy")
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in own},
        **{name: version_of(name) for name in PEERS.values()},
    }
