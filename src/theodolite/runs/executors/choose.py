"""Which executor a person asked for by name."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from theodolite.core import ConfigError, unknown_name
from theodolite.runs.executors.inprocess import InProcess
from theodolite.runs.executors.pool import Pool
from theodolite.runs.executors.ray.cluster import RayCluster
from theodolite.runs.executors.task import Executor

EXECUTORS = ("pool", "ray")


def check_executor(
    name: str, *, jobs: int | None, address: str | None, gpus: float | None
) -> None:
    """Refuse settings that the executor of that name does not have.

    Args:
        name: ``pool`` or ``ray``.
        jobs: Cells at once; 0 for this process.
        address: Of a Ray cluster.
        gpus: GPUs a cell on Ray.

    Raises:
        ConfigError: With the command line's names of the settings.
    """
    if name not in EXECUTORS:
        raise unknown_name("executor", name, EXECUTORS)
    if name == "pool" and (address is not None or gpus is not None):
        given = "--address" if address is not None else "--gpus"
        raise ConfigError(
            f"{given} was given and the executor is the local pool: add --executor "
            "ray, or leave it out"
        )
    if name == "ray" and jobs == 0:
        raise ConfigError(
            "--jobs 0 works in this process, which Ray cannot: leave out --jobs or "
            "--executor ray"
        )


def executor_for(
    name: str,
    *,
    jobs: int | None = None,
    address: str | None = None,
    gpus: float | None = None,
    device: str | None = None,
    initialise: Callable[[], None] | None = None,
) -> AbstractContextManager[Executor]:
    """Return what carries cells to processes, to be entered.

    Args:
        name: ``pool`` or ``ray``.
        jobs: Cells at once; as many as fit by default, 0 for this process.
        address: Of a Ray cluster; one is started here by default.
        gpus: GPUs a cell on Ray; by default one where the device is CUDA.
        device: Where cells compute.
        initialise: Called once in each worker.

    Example:
        >>> with executor_for("pool", jobs=0) as executor:
        ...     executor.jobs
        0
    """
    check_executor(name, jobs=jobs, address=address, gpus=gpus)
    if name == "ray":
        # Ray hides the GPUs that a task does not ask for.
        wanted = 1.0 if (device or "").startswith("cuda") else 0.0
        return RayCluster(
            address,
            gpus=wanted if gpus is None else gpus,
            initialise=initialise,
            jobs=jobs,
        )
    if jobs == 0:
        return nullcontext(InProcess(initialise=initialise))
    return Pool(jobs, initialise=initialise)
