"""Does every node have this very package, or must it travel?"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import theodolite

# Nodes that cannot tell in this time are sent the package.
_ANSWER_S = 60.0


def travelling_code(ray: Any) -> dict[str, Any] | None:
    """Return the runtime environment that carries the package, None if all have it.

    Only the package travels: its dependencies must be installed on the nodes.
    """
    digest = _digest_function()
    mine = digest()
    if all(answer == mine for answer in _ask_nodes(ray, digest)):
        return None
    return {
        "py_modules": [str(Path(theodolite.__file__).parent)],
        "excludes": ["__pycache__", "*.pyc"],
    }


def _ask_nodes(ray: Any, question: Callable[[], str | None]) -> list[str | None]:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    remote = ray.remote(num_cpus=0, max_retries=0)(question)
    answers = [
        remote.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], False)
        ).remote()
        for node in ray.nodes()
        if node["Alive"]
    ]
    try:
        return ray.get(answers, timeout=_ANSWER_S)
    except ray.exceptions.RayError:
        return [None]


def _digest_function() -> Callable[[], str | None]:
    """Make a function that travels by value, since the package may not be there."""

    def digest() -> str | None:
        import hashlib
        import importlib.util
        from pathlib import Path

        try:
            package = importlib.util.find_spec("theodolite")
        except (ImportError, ValueError):
            package = None
        if package is None or package.origin is None:
            return None
        root, total = Path(package.origin).parent, hashlib.sha256()
        # A room's stub says where its names lie, so it counts as code.
        for path in sorted(p for p in root.rglob("*") if p.suffix in (".py", ".pyi")):
            total.update(str(path.relative_to(root)).encode())
            total.update(path.read_bytes())
        return total.hexdigest()

    return digest
