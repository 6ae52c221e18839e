"""A block of the network's map."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Block:
    """A block of the network.

    Attributes:
        index: Its position in order of depth, from 0.
        name: Path of the module that adds, such as ``layer1.0``. If one module adds
            several times: the path of the branch. If that is the same too: ``path#1``,
            ``path#2``. Never ``whole``.
        kind: ``"residual"``, ``"plain"``, ``"stem"`` or ``"head"``.
        skip: What the skip does (``"identity"``, ``"projection"``, …), or ``""``.
        norms: Norms as ``kind:placement``, such as ``"batch:pre"``.
        activations: Names of its nonlinearities.
        n_parameters: Number of its parameters, including those of submodules.
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
