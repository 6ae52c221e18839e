"""Tensors inside a foreign forward, found in another pass by the order of its calls.

A recording numbers all values, also those that no module returns. A hook is set at the
torch function that returned a value. Functions that return real tensors are counted in
each pass, and the count is the same in another pass of the same model.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

from torch import Tensor, nn

from theodolite.core import MeasurementError
from theodolite.instruments import Listener

from .recorder import Recorder

# Index of a function in a pass, and index among the tensors that it returned.
Place = tuple[int, int]
Action = Callable[[Tensor], Tensor | None]


class OtherWayError(MeasurementError):
    """A pass computed something else than the recorded pass."""


class _Counting(Listener):
    """Counts functions that return real tensors, and shows each of these tensors."""

    _count, _open = 0, True

    def on_function(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Call a function, and look at what it returned; not at reads of attributes."""
        result = function(*args, **kwargs)
        if not self._open or getattr(function, "__name__", "") == "__get__":
            return result
        parts = result if isinstance(result, tuple | list) else [result]
        real = [isinstance(t, Tensor) and t.is_floating_point() for t in parts]
        for position, tensor in enumerate(parts):
            if real[position]:
                result = self._see((self._count, position), tensor, result)
        self._count += any(real)
        return result

    @abstractmethod
    def _see(self, place: Place, tensor: Tensor, result: Any) -> Any:
        """Return the result of a function, of which a tensor is a part."""


class Places(_Counting):
    """Records which function returned each value, beside a recorder.

    Attributes:
        places: Place of each value, by its number.
        shapes: Shape of the tensor at each place, without the batch axis.
    """

    def __init__(self) -> None:
        self.places: dict[int, Place] = {}
        self.shapes: dict[Place, tuple[int, ...]] = {}

    def beside(self, recorder: Recorder) -> Self:
        """Take the numbers of values from a recorder."""
        self._recorder = recorder
        return self

    def _see(self, place: Place, tensor: Tensor, result: Any) -> Any:
        self.places.setdefault(self._recorder.number(tensor), place)
        self.shapes[place] = tuple(tensor.shape[1:])
        return result


class ActivationHooks(_Counting):
    """Calls functions on some tensors of one pass; they may replace the tensors.

    Args:
        actions: The function for each place.
        shapes: Expected shapes, to detect a pass that computes something else.
    """

    def __init__(
        self, actions: Mapping[Place, Action], shapes: Mapping[Place, tuple[int, ...]]
    ) -> None:
        self._actions, self._shapes, self._open = actions, shapes, False
        self.met: set[Place] = set()

    @contextmanager
    def during(self, model: nn.Module) -> Iterator[None]:
        """Count only the functions of the model's first forward inside."""

        def enter(*_: Any) -> None:
            self._open = not self.met and self._count == 0

        def leave(*_: Any) -> None:
            self._open = False

        with (
            self,
            model.register_forward_pre_hook(enter),
            model.register_forward_hook(leave),
        ):
            yield

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Do not count the functions inside, such as those that measure."""
        before, self._open = self._open, False
        try:
            yield
        finally:
            self._open = before

    def _see(self, place: Place, tensor: Tensor, result: Any) -> Any:
        if place not in self._actions:
            return result
        if tuple(tensor.shape[1:]) != self._shapes[place]:
            raise OtherWayError(
                f"a tensor of shape {tuple(tensor.shape)} came where an earlier pass "
                f"had {self._shapes[place]} per sample: the model does not compute the "
                "same twice; switch off what chooses a path at random"
            )
        self.met.add(place)
        changed = self._actions[place](tensor)
        if changed is None:
            return result
        if isinstance(result, Tensor):
            return changed
        return type(result)([changed if part is tensor else part for part in result])
