"""Singular values of each block's Jacobian, and from end to end."""

import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal

import numpy as np
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from theodolite.core import MeasurementError, TheodoliteError
from theodolite.instruments import SingularValues, singular_values

from .activation_hooks import Action, ActivationHooks, Place
from .block_map import BlockMap, BlockSpan
from .context import SurveyContext
from .contract import Found, Measure, number
from .curvature import spread_out

_SHARES = tuple(place / 10 for place in range(11))
_STEPS = (48, 24, 12)
_SAMPLES = 8
# Largest number of rows, and of entries, of a Jacobian that is computed in full, and
# the longest side for which exact methods are quick.
_ROWS, _ENTRIES, _SIDE = 128, 2**25, 2048


class JacobianMeasure(Measure):
    """Quantiles of the singular values of every block, at the activations of a batch.

    ``singular_value`` is the quantile at ``share``, zeros included. The block ``whole``
    runs from the first block's input to the last one's output.
    """

    name: ClassVar = "jacobian"
    share: ClassVar = 0.14

    def refusal(self, context: SurveyContext) -> str:
        """Refuse a model without blocks."""
        if not any(_is_real(context, s.entry) for s in context.block_map.spans):
            return context.unmapped or (
                "no blocks were found on the map: there is nothing to differentiate"
            )
        return ""

    def least(self, context: SurveyContext) -> float:
        """Return the gradients of few products with all blocks."""
        return _cost(context, _STEPS[-1])

    def rows(self, context: SurveyContext, gradients: float) -> Iterator[Found]:
        """Yield the whole network, and blocks spread over the depth."""
        block_spans = [s for s in context.block_map.spans if _is_real(context, s.entry)]
        ends = block_spans[0].entry, block_spans[-1].output
        spans = [_span(s) for s in spread_out(block_spans)]
        # The whole network first if it has few outputs: then it is exact and quick.
        place = 0 if _method(context, ends, 2) == "dense" else len(spans)
        spans.insert(place, ("whole", None, *ends))
        samples = context.at_most(_SAMPLES)
        steps = next(s for s in _STEPS if _cost(context, s) <= gradients)
        for name, depth, entry, output in spans:
            labels = {"block": name, "depth": depth, "n_samples": samples}
            try:
                yield from _block(context, (entry, output), samples, steps, labels)
            except TheodoliteError as refused:
                context.unsupported.append(f"{name}: no Jacobian, for {refused}")


def _is_real(context: SurveyContext, value: int) -> bool:
    """Return whether a value is real, so that it can be differentiated by."""
    return "float" in context.block_map.anatomy.recording.values[value].dtype


def _span(block_span: BlockSpan) -> tuple[str, int | None, int, int]:
    return (
        block_span.block.name,
        block_span.block.index,
        block_span.entry,
        block_span.output,
    )


def _method(
    context: SurveyContext, span: tuple[int, int], samples: int
) -> Literal["auto", "dense", "quadrature"]:
    """Return an exact method for small Jacobians, else products, which are counted."""
    values = context.block_map.anatomy.recording.values
    columns, rows = (samples * math.prod(values[end].shape[1:]) for end in span)
    few = rows <= _ROWS and rows * columns <= _ENTRIES
    if few:
        return "dense"
    return "auto" if max(rows, columns) <= _SIDE else "quadrature"


def _cost(context: SurveyContext, steps: int) -> float:
    """Return two gradients per step, over all blocks and over the whole."""
    return 4 * (steps + 2) * context.gradients(context.at_most(_SAMPLES))


def _block(
    context: SurveyContext,
    span: tuple[int, int],
    samples: int,
    steps: int,
    labels: dict[str, Any],
) -> Iterator[Found]:
    marked = Marked(context.model, context.block_map, *span)
    batch = context.first(samples)
    given: dict[str, Any] = {
        "block": Marked.BLOCK,
        "norm_mode": context.norm_mode,
        "outputs": context.outputs,
    }
    spectrum = singular_values(
        marked,
        batch,
        **given,
        method=_method(context, span, samples),
        tol=0.1,
        max_steps=steps,
        seed=context.seed,
    )
    context.passes += spectrum.cost.passes
    yield from _quantiles(spectrum, labels)


def _quantiles(spectrum: SingularValues, labels: dict[str, Any]) -> Iterator[Found]:
    at = quantile_of(spectrum)
    facts = {**labels, "status": str(spectrum.status)}
    for share in _SHARES:
        value = at(share)
        low, high = at(share - spectrum.bound), at(share + spectrum.bound)
        error = max(value - low, high - value, spectrum.tolerance)
        yield number("singular_value", value, error, share=share, **facts)


def quantile_of(spectrum: SingularValues) -> Callable[[float], float]:
    """Return the quantiles of singular values as a function, zeros included."""
    values, weights = spectrum.values[::-1], spectrum.weights[::-1]
    zeros = max(0.0, 1 - float(weights.sum()))
    reached = zeros + np.cumsum(weights)

    def at(share: float) -> float:
        if not len(values) or (zeros > 1e-9 and share < zeros):
            return 0.0
        place = int(np.searchsorted(reached, min(max(share, 0.0), 1.0) - 1e-9))
        return float(values[min(place, len(values) - 1)])

    return at


class Marked(nn.Module):
    """Another model, with identities put where two values of its map are made.

    Instruments that need submodules use the identities. All computation between the
    two values lies between them, also if it is not done by modules.

    Args:
        model: The model.
        block_map: Its map.
        entry: Number of the value at the first mark.
        output: Number of the value at the second mark.

    Raises:
        MeasurementError: No torch function returns one of the values.
    """

    BLOCK: ClassVar = ("entry", "exit")

    def __init__(
        self,
        model: nn.Module,
        block_map: BlockMap,
        entry: int,
        output: int,
    ) -> None:
        super().__init__()
        self.model, self.entry, self.exit = model, nn.Identity(), nn.Identity()
        self._shapes = block_map.shapes
        self._at_input = _input_shape(block_map, entry)
        self._actions: dict[Place, Action] = {_place(block_map, output): self.exit}
        if self._at_input is None:
            self._actions[_place(block_map, entry)] = self.entry

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model with its marks."""
        if self._at_input is not None:
            args, kwargs = self._entered(args, kwargs)
        hooks = ActivationHooks(self._actions, self._shapes)
        with hooks.during(self.model):
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


def _input_shape(block_map: BlockMap, number: int) -> tuple[int, ...] | None:
    """Return the shape of one sample if the value is a model input, else None."""
    value = block_map.anatomy.recording.values[number]
    return value.shape[1:] if value.source == "input" else None


def _place(block_map: BlockMap, number: int) -> Place:
    if number not in block_map.places:
        raise MeasurementError(
            "its ends are made inside of one operator, where they cannot be marked: "
            "write the block with functions of torch"
        )
    return block_map.places[number]
