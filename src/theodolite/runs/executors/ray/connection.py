"""Reach a Ray cluster, or say in seconds that it does not answer."""

import logging
import os
import re
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from theodolite.core import ConfigError, RunError
from theodolite.runs.executors.ray.code import travelling_code

_KNOCK_S, _ANSWER_S = 4.0, 9.0
_CLIENT = "ray://"
_CLIENT_PORT = 10001  # of `ray start --ray-client-server-port`
# In a process of its own: where a stranger listens, the client waits for ever or
# ends the process.
_ASK = "import sys\nfrom ray._raylet import GcsClient\nGcsClient(address=sys.argv[1])"


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
    code = travelling_code(ray)
    if code is not None:
        # Ray uploads a local package only while it connects.
        disconnect(ray)
        _start(ray, address, runtime_env=code)
    return ray


def disconnect(ray: Any) -> None:
    """Leave the cluster, and end it where it was started here."""
    with _without_warnings():
        ray.shutdown()
    _speak(True)


def checked_address(address: str) -> str:
    """Return the address if something answers there, within seconds."""
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
        raise _silent(address, str(reason)) from error
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
        raise _silent("auto", lines[0].split(". ")[0].rstrip(". ")) from error
    if address is None:
        raise _silent("auto", "none runs on this machine")
    return address


def _ask(address: str) -> None:
    """See whether it is a Ray cluster that listens there."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _ASK, address],
            capture_output=True,
            timeout=_ANSWER_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _silent(address, "something listens, but not as Ray does") from None
    if b"AuthenticationError" in done.stderr:
        raise RunError(
            f"the Ray cluster at {address!r} asks for a token that this process has "
            "not: set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN_PATH to where it lies"
        )
    if done.returncode:
        raise _silent(address, "something listens, but refused to talk")


def _start(ray: Any, address: str, **options: Any) -> None:
    _speak(False)
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
        _speak(True)
        where = "here" if address == "local" else f"at {address!r}"
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise RunError(
            f"no Ray cluster could be used {where} ({lines[0].rstrip('. ')}): start "
            "one with `ray start --head`, with the same Python and Ray as here, or "
            "use the local pool"
        ) from error


def _silent(address: str, reason: str) -> RunError:
    return RunError(
        f"no Ray cluster answers at {address!r} ({reason}): start one with `ray start "
        "--head`, give its address, or use the local pool"
    )


def _speak(aloud: bool) -> None:
    """Keep what nodes say about lost workers off standard output, or let it through.

    ``log_to_driver`` does not cover it; the reports of cells say what matters.
    """
    with suppress(ImportError, AttributeError):
        import ray._private.worker as driver

        driver._worker_logs_enabled = aloud


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Keep warnings about Ray's own code from the user."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
