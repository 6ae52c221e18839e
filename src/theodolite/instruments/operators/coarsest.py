"""Notice the coarsest type of numbers in what is computed, here or by a crew."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, Token
from typing import Any, Self

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Coarsest(TorchDispatchMode):
    """Notice the coarsest type of real numbers in what runs inside.

    Attributes:
        eps: Its relative spacing, 0 before anything ran.
        paused: Whether what runs now is left out.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Leave torch's compiler unloaded, which takes seconds; nothing needs it."""
        return False

    def __init__(self) -> None:
        super().__init__()
        self.eps, self.paused = 0.0, False
        self._token: Token[Coarsest | None] | None = None

    def __enter__(self) -> Self:
        self._token = _watching.set(self)
        return super().__enter__()

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)
        if self._token is not None:
            _watching.reset(self._token)

    def apart(self, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Leave out what a change computes: copies start from the types as found."""

        def changed(given: Any) -> Any:
            with self._pause():
                return change(given)

        return changed

    @contextmanager
    def _pause(self) -> Iterator[None]:
        before, self.paused = self.paused, True
        try:
            yield
        finally:
            self.paused = before

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        found = func(*args, **(kwargs or {}))
        for leaf in [] if self.paused else tree_leaves(found):
            if isinstance(leaf, Tensor) and leaf.is_floating_point():
                if leaf.numel() > 1:
                    self.eps = max(self.eps, torch.finfo(leaf.dtype).eps)
        return found


_watching: ContextVar[Coarsest | None] = ContextVar("watching", default=None)


def watched() -> bool:
    """Whether someone notices types in this thread."""
    return _watching.get() is not None


def seen_elsewhere(eps: float) -> None:
    """Tell whoever notices types here of the coarsest in another process."""
    if (mode := _watching.get()) is not None:
        mode.eps = max(mode.eps, eps)


def unwatched() -> AbstractContextManager[None]:
    """Leave out what runs inside, such as the sending of data and their arrival."""
    mode = _watching.get()
    return nullcontext() if mode is None else mode._pause()
