"""Tensors inside a foreign forward, found in another pass by the order of its calls.

A recording numbers all values, also those that no module returns. A hook is set at the
torch function that returned a value. Functions that return real tensors are counted in
each pass, and the count is the same in another pass of the same model.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

from torch import Tensor, nn

from theodolite.anatomy import Recorder
from theodolite.core import MeasurementError
from theodolite.instruments import Listener

# Index of a function in a pass, and index among the tensors that it returned.
Place = tuple[int, int]
Action = Callable[[Tensor], Tensor | None]


class OtherWayError(MeasurementError):
    """A pass computed something else than the recorded pass."""


class Places(Listener):
    """Records which function returned each value, beside a recorder.

    Attributes:
        places: Place of each value, by its number.
        shapes: Shape of the tensor at each place, without the batch axis.
    """

    def __init__(self) -> None:
        self._count = 0
        self.places: dict[int, Place] = {}
        self.shapes: dict[Place, tuple[int, ...]] = {}

    def beside(self, recorder: Recorder) -> Self:
        """Take the numbers of values from a recorder."""
        self._recorder = recorder
        return self

    def on_function(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Call a function, and record what it returned."""
        result = function(*args, **kwargs)
        returned = _returned(function, result)
        for position, tensor in returned:
            place = (self._count, position)
            self.places.setdefault(self._recorder.number(tensor), place)
            self.shapes[place] = tuple(tensor.shape[1:])
        self._count += bool(returned)
        return result


class ActivationHooks(Listener):
    """Calls functions on some tensors of one pass; they may replace the tensors.

    Args:
        actions: The function for each place.
        shapes: Expected shapes, to detect a pass that computes something else.
    """

    def __init__(
        self, actions: Mapping[Place, Action], shapes: Mapping[Place, tuple[int, ...]]
    ) -> None:
        self._actions, self._shapes = actions, shapes
        self._count, self._open = 0, False
        self.met: set[Place] = set()

    @contextmanager
    def during(self, model: nn.Module) -> Iterator[None]:
        """Count only the functions of the model's first forward inside."""

        def enter(*_: Any) -> None:
            self._open = not self.met and self._count == 0

        def leave(*_: Any) -> None:
            self._open = False

        handles = [
            model.register_forward_pre_hook(enter),
            model.register_forward_hook(leave),
        ]
        try:
            with self:
                yield
        finally:
            for handle in handles:
                handle.remove()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Do not count the functions inside, such as those that measure."""
        before, self._open = self._open, False
        try:
            yield
        finally:
            self._open = before

    def on_function(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Call a function, and act on what it returned."""
        result = function(*args, **kwargs)
        if not self._open:
            return result
        returned = _returned(function, result)
        for position, tensor in returned:
            place = (self._count, position)
            if place in self._actions:
                result = self._act(place, tensor, result)
        self._count += bool(returned)
        return result

    def _act(self, place: Place, tensor: Tensor, result: Any) -> Any:
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
        parts = [changed if part is tensor else part for part in result]
        return type(result)(parts)


def _returned(function: Any, result: Any) -> list[tuple[int, Tensor]]:
    """List the real tensors that a function returned; attribute reads are left out."""
    if getattr(function, "__name__", "") == "__get__":
        return []
    parts = result if isinstance(result, tuple | list) else [result]
    return [
        (position, part)
        for position, part in enumerate(parts)
        if isinstance(part, Tensor) and part.is_floating_point()
    ]
