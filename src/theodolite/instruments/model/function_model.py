"""Models that are given as a function and a dict of its tensors."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from theodolite.core import MeasurementError


class FunctionModel(nn.Module):
    """A function and its tensors, with which it shares memory.

    Args:
        function: ``function(params, inputs)``, where a mapping of inputs is passed as
            keyword arguments; or ``function(params)``.
        params: Real tensors by any names.
    """

    def __init__(
        self, function: Callable[..., Any], params: Mapping[str, Tensor]
    ) -> None:
        super().__init__()
        self.function = function
        for name, tensor in params.items():
            # register_parameter refuses names with dots, as of named_parameters().
            self._parameters[name] = nn.Parameter(tensor.detach())

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Return the value of the function."""
        return self.function(dict(self._parameters), *inputs, **named)


def as_module(model: Any) -> nn.Module:
    """Return a model as a module, or refuse what is none."""
    if isinstance(model, nn.Module):
        return model
    if not (isinstance(model, tuple) and len(model) == 2 and callable(model[0])):
        raise MeasurementError(
            f"the model is a {type(model).__name__}: pass a torch module, a pair "
            "(function, params) of a function of a dict of tensors and that dict, or a "
            "Problem of one"
        )
    function, params = model
    if isinstance(function, nn.Module):
        raise MeasurementError(
            f"a pair of a {type(function).__name__} and tensors came as the model: "
            "pass the module itself, or (lambda params, x: torch.func.functional_call("
            "model, params, x), params)"
        )
    named = dict(params) if isinstance(params, Mapping) else {}
    real = [isinstance(t, Tensor) and t.is_floating_point() for t in named.values()]
    if not real or not all(real):
        raise MeasurementError(
            f"the parameters of the function are a {type(params).__name__} with "
            f"{sum(real)} real tensors of {len(real)} entries: pass a dict of names "
            "and real tensors"
        )
    return FunctionModel(function, params)


def own_value(model: nn.Module, batch: Any) -> Tensor:
    """Return the value of a function that takes no data."""
    del batch
    return model()
