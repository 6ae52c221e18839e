"""A model with two marks in its forward, between which it can be differentiated."""

from typing import Any, ClassVar

from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from theodolite.core import MeasurementError

from .charting import Chart
from .taps import Action, Place, Taps


class Marked(nn.Module):
    """Another model, with identities put where two values of its map are made.

    Instruments that need submodules use the identities. All computation between the
    two values lies between them, also if it is not done by modules.

    Args:
        model: The model.
        chart: Its map.
        entry: Number of the value at the first mark.
        output: Number of the value at the second mark.

    Raises:
        MeasurementError: No torch function returns one of the values.
    """

    BLOCK: ClassVar = ("entry", "exit")

    def __init__(
        self,
        model: nn.Module,
        chart: Chart,
        entry: int,
        output: int,
    ) -> None:
        super().__init__()
        self.model, self.entry, self.exit = model, nn.Identity(), nn.Identity()
        self._shapes = chart.shapes
        self._at_input = _input_shape(chart, entry)
        self._actions: dict[Place, Action] = {_place(chart, output): self.exit}
        if self._at_input is None:
            self._actions[_place(chart, entry)] = self.entry

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model with its marks."""
        if self._at_input is not None:
            args, kwargs = self._entered(args, kwargs)
        taps = Taps(self._actions, self._shapes)
        with taps.during(self.model):
            return self.model(*args, **kwargs)

    def _entered(self, args: Any, kwargs: Any) -> Any:
        """Put the first mark on the first tensor of the expected shape."""
        leaves, tree = tree_flatten((args, kwargs))
        for place, leaf in enumerate(leaves):
            if isinstance(leaf, Tensor) and leaf.is_floating_point():
                if tuple(leaf.shape[1:]) == self._at_input:
                    leaves[place] = self.entry(leaf)
                    break
        return tree_unflatten(leaves, tree)


def _input_shape(chart: Chart, number: int) -> tuple[int, ...] | None:
    """Return the shape of one sample if the value is a model input, else None."""
    value = chart.anatomy.recording.values[number]
    return value.shape[1:] if value.source == "input" else None


def _place(chart: Chart, number: int) -> Place:
    if number not in chart.places:
        raise MeasurementError(
            "its ends are made inside of one operator, where they cannot be marked: "
            "write the block with functions of torch"
        )
    return chart.places[number]
