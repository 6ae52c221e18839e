"""A block of the network's map."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Block:
    """A stretch of the network, in order of depth.

    Attributes:
        index: Its place, from 0.
        name: Path of the module that adds, such as ``layer1.0``; where one module adds
            several times, of what it adds, and ``path#1``, ``path#2`` where that is
            one as well. Never ``whole``.
        kind: ``"residual"``, ``"plain"``, ``"stem"`` or ``"head"``.
        skip: What the skip does (``"identity"``, ``"projection"``, …), or ``""``.
        norms: Norms as ``kind:placement``, such as ``"batch:pre"``.
        activations: Names of its nonlinearities.
        n_parameters: Parameters that it owns, those of inner modules among them.
        addition: Index among the additions of its anatomy, None if it adds nothing.
    """

    index: int
    name: str
    kind: str
    skip: str = ""
    norms: tuple[str, ...] = ()
    activations: tuple[str, ...] = ()
    n_parameters: int = 0
    addition: int | None = None
