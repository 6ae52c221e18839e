"""The batch and the loss of a training step, seen without being given."""

import inspect
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import (
    _get_current_function_mode_stack,
    _pop_mode,
    _push_mode,
)
from torch.utils._pytree import tree_leaves, tree_map

from theodolite.core import MeasurementError
from theodolite.instruments import Listener, run_model

# Functions that change running statistics when they are called again.
_CHANGING = ("batch_norm", "instance_norm")
_PRODUCTS = ("mul", "__mul__", "__rmul__", "multiply")


class _Call(NamedTuple):
    """One torch function between the model and its loss, or a pass of the model."""

    function: Callable[..., Any] | None
    args: Any
    kwargs: Any
    result: Any


class StepRecorder(Listener):
    """Sees the batch that a model gets, and how the loss follows from its outputs.

    From the end of the model's forward to ``backward``, the torch functions that the
    loop calls are kept. So the loss can be computed again on the same samples,
    whether it is a module, a function or a formula, or the model returns it. A model
    that is called several times before ``backward``, as for contrastive losses, is
    called so again. Passes without gradients are validation and are ignored, and so are
    those of other threads than the one that opened it, which may measure the model.

    Args:
        model: The model, as the loop calls it.

    Attributes:
        values: The losses of this step, one per call of ``backward``, detached.
        function: Name of the last torch function of the loss, such as
            ``cross_entropy``; empty if the model returned it.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._handles: list[Any] = []
        self._listening = False
        self.forget()

    def open(self) -> None:
        """Set the hooks."""
        self._thread = threading.get_ident()
        self._handles = [
            self._model.register_forward_pre_hook(self._before, with_kwargs=True),
            self._model.register_forward_hook(self._after, with_kwargs=True),
        ]

    def close(self) -> None:
        """Remove the hooks; keep what was seen."""
        self._stop()
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def forget(self) -> None:
        """Drop what was seen."""
        self._inputs: Any = None
        self._over = True  # so that the next pass begins another loss
        self._outputs: list[Tensor] = []
        self._calls: list[_Call] = []
        self._made: dict[int, Tensor] = {}  # results, kept so that no id is used twice
        self._loss: Tensor | None = None
        self._parts = 1
        self._foreign = False  # whether the loss has parts that were not seen
        self.values: list[Tensor] = []
        self.function = ""

    def next_step(self) -> None:
        """Begin another step; the batch and the loss are kept until its first pass."""
        self._over = True
        self.values.clear()

    @property
    def called(self) -> bool:
        """Whether the model was called with gradients."""
        return self._inputs is not None

    def batch(self) -> Any:
        """Return what the model was called with, and the targets of the loss.

        Raises:
            MeasurementError: The model was not called, or its call cannot be repeated.
        """
        if self._inputs is None:
            raise MeasurementError(
                "the model was not called with gradients before this step: train the "
                "model that is watched, or pass batches"
            )
        inputs, targets = _as_one(self._model, *self._inputs), self._targets()
        if not targets:
            return inputs
        return inputs, targets[0] if len(targets) == 1 else tuple(targets)

    def criterion(self) -> "ReplayedLoss | None":
        """Return the loss as a function of model and batch; None if it was not seen."""
        changing = any(_name(call) in _CHANGING for call in self._calls)
        if self._loss is None or self._foreign or changing:
            return None
        return ReplayedLoss(
            self._model,
            outputs=self._outputs,
            calls=self._calls,
            targets=self._targets(),
            loss=self._loss,
            parts=self._parts,
        )

    def on_function(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Call a function, and keep it if its result depends on weights."""
        result = function(*args, **kwargs)
        if function is Tensor.backward:
            self._back(args[0])
        elif self._loss is None and torch.is_grad_enabled():
            made = [t for t in _tensors(result) if t.requires_grad]
            if made:
                self._foreign |= any(
                    t.grad_fn is not None and id(t) not in self._made
                    for t in _tensors((args, kwargs))
                )
                self._calls.append(_Call(function, args, kwargs, result))
                self._made |= {id(t): t for t in made}
        return result

    def _before(
        self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        if threading.get_ident() != self._thread:
            return
        self._stop()
        if torch.is_grad_enabled() and self._over:
            self._inputs = tree_map(_detached, (args, dict(kwargs)))
            self._outputs, self._calls, self._made, self._loss = [], [], {}, None
            self._foreign = False

    def _after(self, module: Any, args: Any, kwargs: Any, outputs: Any) -> None:
        elsewhere = threading.get_ident() != self._thread
        if elsewhere or not torch.is_grad_enabled() or self._inputs is None:
            return
        made = list(_tensors(outputs))
        if self._over:
            self._outputs, self._over = made, False
        else:
            given, named = tree_map(_detached, (args, dict(kwargs)))
            self._calls.append(_Call(None, given, named, outputs))
        self._made |= {id(t): t for t in made}
        _push_mode(self)
        self._listening = True

    def _back(self, loss: Tensor) -> None:
        """Keep the loss that ``backward`` was called on, if it is of this model."""
        if loss.numel() != 1 or id(loss) not in self._made:
            return
        made = {id(t): c for c in self._calls for t in _tensors(c.result)}
        while (call := made.get(id(loss))) and (plain := _unscaled(call)) is not None:
            loss = plain
        call = made.get(id(loss))
        self._loss, self.function = loss, "" if call is None else _name(call)
        self.values.append(loss.detach())
        self._over = True
        self._parts = len(self.values)

    def _targets(self) -> list[Tensor]:
        """Return the tensors beside the outputs that the loss is computed from."""
        found: dict[int, Tensor] = {}
        for call in self._calls:
            for tensor in _tensors((call.args, call.kwargs)):
                if not tensor.requires_grad and tensor.ndim:
                    found[id(tensor)] = tensor
        return list(found.values())

    def _stop(self) -> None:
        """Stop listening, also if a context of the loop was left in between."""
        if not self._listening:
            return
        self._listening = False
        later = []
        if any(mode is self for mode in _get_current_function_mode_stack()):
            while (mode := _pop_mode()) is not self:
                later.append(mode)
        else:  # a context entered before this one removed it in its own place
            _pop_mode()
        for mode in reversed(later):
            _push_mode(mode)


class ReplayedLoss:
    """The loss of a watched loop, computed again as a function of model and batch."""

    def __init__(
        self,
        model: nn.Module,
        *,
        outputs: list[Tensor],
        calls: list[_Call],
        targets: list[Tensor],
        loss: Tensor,
        parts: int,
    ) -> None:
        self.__name__ = _name(calls[-1]) if calls else "the model's own loss"
        self._outputs, self._calls, self._targets = outputs, calls, targets
        self._loss, self._parts = loss, parts
        self._names = {id(p): name for name, p in model.named_parameters()}

    def __call__(self, model: nn.Module, batch: Any) -> Tensor:
        """Return the loss of a batch of the recorded kind."""
        targets = batch[1] if self._targets else ()
        targets = targets if isinstance(targets, tuple) else (targets,)
        now = dict(zip(map(id, self._targets), targets, strict=True))
        fresh = _tensors(run_model(model, batch))
        now |= dict(zip(map(id, self._outputs), fresh, strict=True))
        own = dict(model.named_parameters())
        now |= {at: own[name] for at, name in self._names.items() if name in own}

        def swap(leaf: Any) -> Any:
            return now.get(id(leaf), leaf)

        for call in self._calls:
            args, kwargs = tree_map(swap, (call.args, call.kwargs))
            result = (call.function or model)(*args, **kwargs)
            pairs = zip(_tensors(call.result), _tensors(result), strict=True)
            now |= {id(old): new for old, new in pairs}
        return now[id(self._loss)] * self._parts


def _unscaled(call: _Call) -> Tensor | None:
    """Return the loss that a GradScaler multiplied by its scale, else None."""
    if _name(call) not in _PRODUCTS or len(call.args) != 2:
        return None
    loss, scale = call.args
    for one, other in ((loss, scale), (scale, loss)):
        if isinstance(one, Tensor) and isinstance(other, Tensor):
            if one.requires_grad and not (other.requires_grad or other.ndim):
                return one
    return None


def _name(call: _Call) -> str:
    return getattr(call.function, "__name__", "")


def _tensors(value: Any) -> Iterator[Tensor]:
    for leaf in tree_leaves(value):
        if isinstance(leaf, Tensor):
            yield leaf
        elif isinstance(named := getattr(leaf, "__dict__", None), dict):
            if not isinstance(leaf, nn.Module | type):
                yield from (v for v in named.values() if isinstance(v, Tensor))


def _detached(leaf: Any) -> Any:
    return leaf.detach() if isinstance(leaf, Tensor) else leaf


def _as_one(model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Return arguments as instruments take them: one value, or a mapping of names."""
    if len(args) == 1 and not kwargs:
        return args[0]
    if not args:
        return dict(kwargs)
    forward = getattr(model, "_orig_mod", model).forward
    kinds = inspect.signature(forward).parameters
    names = inspect.signature(forward).bind(*args, **kwargs).arguments
    if any(kinds[n].kind is inspect.Parameter.VAR_POSITIONAL for n in names):
        raise MeasurementError(
            f"the model was called with {len(args)} arguments that have no names: pass "
            "batches as a mapping of keywords"
        )
    for name in [n for n in names if kinds[n].kind is inspect.Parameter.VAR_KEYWORD]:
        names |= names.pop(name)
    return dict(names)
