"""Detect, before it happens, that a network draws from torch's generator."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

# Functions of torch that use the generator which all threads share.
_DRAWING = frozenset(
    """
    alpha_dropout alpha_dropout_ bernoulli bernoulli_ binomial cauchy_ dropout dropout1d
    dropout2d dropout3d dropout_ exponential_ feature_alpha_dropout
    feature_alpha_dropout_ feature_dropout feature_dropout_ fractional_max_pool2d
    fractional_max_pool2d_with_indices fractional_max_pool3d
    fractional_max_pool3d_with_indices geometric_ gru gumbel_softmax kaiming_normal_
    kaiming_uniform_ log_normal_ lstm multi_head_attention_forward multinomial
    native_dropout normal normal_ poisson rand rand_like randint randint_like randn
    randn_like random_ randperm rnn_relu rnn_tanh rrelu rrelu_ trunc_normal_ uniform_
    _sample_dirichlet _standard_gamma
    """.split()
)
_ATTENTION, _RATE = "scaled_dot_product_attention", 4  # place of its dropout rate


class RandomDrawMode(TorchFunctionMode):
    """Calls ``begin`` once, before the first function that may draw in this thread.

    A function that can draw counts even if its rate is zero, since a rate may change.
    One that is given a generator does not. Calls that do not go through Python, as in a
    scripted network, are not seen.
    """

    def __init__(self, begin: Callable[[], None]) -> None:
        super().__init__()
        self._begin: Callable[[], None] | None = begin

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Call the function, after ``begin`` if it draws."""
        kwargs = kwargs or {}
        if self._begin is not None and _draws(func, args, kwargs):
            begin, self._begin = self._begin, None
            begin()
        return func(*args, **kwargs)


def _draws(func: Any, args: Any, kwargs: Any) -> bool:
    name = getattr(func, "__name__", "")
    if name == _ATTENTION:
        return bool(kwargs.get("dropout_p", args[_RATE] if len(args) > _RATE else 0))
    own = kwargs.get("generator")
    return name in _DRAWING and (own is None or own is torch.default_generator)


def is_compiled(model: nn.Module) -> bool:
    """Return whether calls of torch in a network may be hidden from Python."""
    return any(
        isinstance(module, torch.jit.ScriptModule)
        or hasattr(module, "_orig_mod")
        or getattr(module, "_compiled_call_impl", None) is not None
        for module in model.modules()
    )
