"""Connect to a Ray cluster, or raise within seconds that it does not answer.

The package travels to nodes that have another version of it.
"""

import logging
import os
import re
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from theodolite.core import ConfigError, Exclusive, RunError

_KNOCK_S, _ANSWER_S = 4.0, 9.0
# Nodes that do not answer in this time are sent the package.
_NODES_S = 60.0
_CLIENT = "ray://"
_CLIENT_PORT = 10001  # of `ray start --ray-client-server-port`
# In a separate process: if something else than Ray listens, the client waits for ever
# or ends the process.
_ASK = """import sys
from ray._raylet import GcsClient
print("asks", flush=True)
GcsClient(address=sys.argv[1])"""


def load_ray() -> Any:
    """Import Ray, or say how to install it."""
    # Ray reads these when it is imported or starts a node.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_DEDUP_LOGS", "0")
    try:
        with _without_warnings():
            import ray
    except ImportError as error:
        raise RunError(
            f"the engine 'ray' needs Ray, which cannot be imported ({error}): "
            "pip install 'theodolite[ray]', or use the local pool"
        ) from error
    return ray


def connect(address: str | None, *, n_cpus: int) -> Any:
    """Connect this process to a cluster whose workers can import this package.

    Args:
        address: ``host:port``, ``ray://host:port``, ``auto`` for the one running
            here, None to start one that ends with this process.
        n_cpus: Processors of the one that is started.
    """
    ray = load_ray()
    if address is None:
        here = {"include_dashboard": False, "num_cpus": n_cpus}
        _start(ray, "local", **here)
        return ray
    address = checked_address(address)
    _start(ray, address)
    environment = _package_environment(ray)
    if environment is not None:
        # Ray uploads a local package only while it connects.
        disconnect(ray)
        _start(ray, address, runtime_env=environment)
    return ray


def disconnect(ray: Any) -> None:
    """Leave the cluster, and end it where it was started here."""
    with _without_warnings():
        ray.shutdown()
    _show_worker_logs(True)


def checked_address(address: str) -> str:
    """Return the address of a cluster that answers; raise within seconds otherwise."""
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS", "")
        if address in ("", "auto", "local"):
            address = _running_here()
    place = address.removeprefix(_CLIENT)
    default = f":{_CLIENT_PORT}" if place != address else ""
    host, colon, port = (place if ":" in place else place + default).rpartition(":")
    if not colon or not host.isprintable() or not host or not _is_port(port):
        raise ConfigError(
            f"the Ray address {address!r} is not understood: use HOST:PORT as `ray "
            "start` prints it, ray://HOST:10001, or auto"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), _KNOCK_S).close()
    except (OSError, ValueError) as error:  # also names that cannot be looked up
        reason = getattr(error, "strerror", None) or error
        raise _no_answer(address, str(reason)) from error
    if place == address:
        _ask(address)
    return address


def _is_port(text: str) -> bool:
    return re.fullmatch("[0-9]{1,5}", text) is not None and 0 < int(text) < 65536


def _running_here() -> str:
    """Return the address of the cluster that this machine is a node of.

    Other nodes were seen to lose a driver that gave Ray "auto" itself, with
    OwnerDiedError, where this address worked.
    """
    from ray._private.services import canonicalize_bootstrap_address

    try:
        address = canonicalize_bootstrap_address("auto")
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise _no_answer("auto", lines[0].split(". ")[0].rstrip(". ")) from error
    if address is None:
        raise _no_answer("auto", "none runs on this machine")
    return address


def _ask(address: str) -> None:
    """Raise unless a Ray cluster listens at the address."""
    with subprocess.Popen(
        [sys.executable, "-P", "-c", _ASK, address],  # nothing of this folder
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as asking:
        assert asking.stdout is not None
        asking.stdout.readline()  # a busy machine may take long to start Python
        try:
            _, said = asking.communicate(timeout=_ANSWER_S)
        except subprocess.TimeoutExpired:
            raise _no_answer(
                address, "something listens, but not as Ray does"
            ) from None
        finally:
            asking.kill()
    if b"AuthenticationError" in said:
        raise RunError(
            f"the Ray cluster at {address!r} asks for a token that this process has "
            "not: set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN_PATH to where it lies"
        )
    if asking.returncode:
        raise _no_answer(address, "something listens, but refused to talk")


def _package_environment(ray: Any) -> dict[str, Any] | None:
    """Return the runtime environment with our packages, None if all nodes have them.

    Only these packages travel: their dependencies must be installed on the nodes.
    """
    packages = _packages()
    digest = _digest_function(list(packages))
    mine = digest()
    if all(answer == mine for answer in _answers_of_nodes(ray, digest)):
        return None
    return {"py_modules": list(packages.values()), "excludes": ["__pycache__", "*.pyc"]}


def _packages() -> dict[str, str]:
    """Return the installed packages of this distribution, and their folders.

    Entry points name the packages of papers; the library works without them.
    """
    points = entry_points(group="theodolite.papers")
    own = (point for point in points if point.dist and point.dist.name == "theodolite")
    names = ["theodolite", *sorted({point.module.split(".")[0] for point in own})]
    specs = {name: find_spec(name) for name in names}
    return {n: str(Path(s.origin).parent) for n, s in specs.items() if s and s.origin}


def _answers_of_nodes(ray: Any, question: Callable[[], str | None]) -> list[str | None]:
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
        return ray.get(answers, timeout=_NODES_S)
    except ray.exceptions.RayError:
        return [None]


def _digest_function(packages: list[str]) -> Callable[[], str | None]:
    """Return a function that travels by value, since nodes may lack the packages."""

    def digest() -> str | None:
        import hashlib
        import importlib.util
        from pathlib import Path

        total = hashlib.sha256()
        for name in packages:
            try:
                package = importlib.util.find_spec(name)
            except (ImportError, ValueError):
                package = None
            if package is None or package.origin is None:
                return None
            root = Path(package.origin).parent
            # A package's stub says where its names are, so it counts as code.
            files = (p for p in root.rglob("*") if p.suffix in (".py", ".pyi"))
            for path in sorted(files):
                total.update(str(path.relative_to(root)).encode())
                total.update(path.read_bytes())
        return total.hexdigest()

    return digest


def _start(ray: Any, address: str, **options: Any) -> None:
    _show_worker_logs(False)
    options |= {"log_to_driver": False, "logging_level": logging.CRITICAL}
    try:
        with _without_warnings():
            try:
                ray.init(address=address, **options)
            except ConnectionAbortedError:
                # The server gives each client's process 30 s to start, which a busy
                # machine may miss; it is there the second time.
                ray.init(address=address, **options)
    except Exception as error:
        _show_worker_logs(True)
        where = "here" if address == "local" else f"at {address!r}"
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise RunError(
            f"no Ray cluster could be used {where} ({lines[0].rstrip('. ')}): start "
            "one with `ray start --head`, with the same Python and Ray as here, or "
            "use the local pool"
        ) from error


def _no_answer(address: str, reason: str) -> RunError:
    return RunError(
        f"no Ray cluster answers at {address!r} ({reason}): start one with `ray start "
        "--head`, give its address, or use the local pool"
    )


def _show_worker_logs(show: bool) -> None:
    """Show or hide messages of nodes about lost workers, which Ray prints.

    ``log_to_driver`` does not cover them; the reports of cells say what matters.
    """
    with suppress(ImportError, AttributeError):
        import ray._private.worker as driver

        driver._worker_logs_enabled = show


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Hide warnings about Ray's own code."""
    with Exclusive(interruptible=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
