"""What goes to a Ray cluster, or one sentence on why it cannot; errors that come."""

from typing import Any

from theodolite.core import RunError


def pickled(value: Any, what: str) -> bytes:
    """Pickle what a cluster needs, or say why it cannot have it."""
    from ray import cloudpickle

    try:
        return cloudpickle.dumps(value)  # pyright: ignore[reportPrivateImportUsage]
    except Exception as error:
        raise RunError(
            f"the {what} cannot be sent to a Ray cluster ({error}): define it at the "
            "top level of a module that the nodes have, or use the local pool"
        ) from error


def stored(ray: Any, value: Any) -> Any:
    """Put what an operator is made of into the object store, or say why it cannot be.

    Ray's own words show the whole of it, the model too.
    """
    try:
        return ray.put(value)
    except TypeError as error:
        reason = str(error.__cause__ or error).strip().splitlines()[0]
        raise RunError(
            "the model, its loss or its data cannot be sent to a Ray cluster "
            f"({reason.rstrip('. ')}): define at the top level of a module what they "
            "call, without locks or open files, or leave executor= out"
        ) from None


def as_raised(ray: Any, error: Any) -> Exception:
    """Return the error that a member raised, of what Ray makes of it."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, Exception) and not isinstance(cause, ray.exceptions.RayError):
        return cause
    said = str(getattr(error, "traceback_str", error)).strip().splitlines()
    reason = said[-1] if said else type(error).__name__
    return RunError(
        f"a member of a Ray crew failed ({reason.rstrip('. ')}): leave executor= out "
        "to see where, or look at Ray's logs"
    )
