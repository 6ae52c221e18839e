"""Listen to the calls that a model makes, and replace some of them.

Torch shows calls at two levels. Functions are what Python code calls, such as
``F.linear`` or ``Tensor.add_``. Operators are what these run below autograd, such as
``aten.addmm``. Autograd functions of other people are seen at neither level, and hooks
show which module runs.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from threading import Lock, local
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn.modules import module as hooks
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Listener(TorchFunctionMode):
    """Sees the calls that its thread makes while it is entered.

    A subclass overrides the methods for calls that it wants to see. ``on_function``,
    ``on_operator`` and ``on_autograd_function`` make the call themselves, so they can
    observe it, change its arguments and results, or compute something else.

    The listener that was entered last sees a call first. Calls that it makes meanwhile
    go to the listeners entered before it. ``on_enter`` is called in the order in which
    listeners were entered, ``on_leave`` in reverse; no listener sees calls inside them.

    Attributes:
        running: Modules that run now, outermost first; for listeners to modules.

    Example:
        >>> class Names(Listener):
        ...     def on_function(self, function, args, kwargs):
        ...         print(function.__name__)
        ...         return function(*args, **kwargs)
        >>> with Names():
        ...     result = torch.ones(2).relu().exp()
        ones
        relu
        exp
    """

    running: list[nn.Module]
    _sees_functions: ClassVar[bool] = False
    _levels: ClassVar[tuple[Callable[[Any], AbstractContextManager[Any]], ...]] = ()
    _opened: ExitStack

    def __init_subclass__(cls) -> None:
        """Find the calls that a subclass wants to see."""

        def overrides(name: str) -> bool:
            return getattr(cls, name) is not getattr(Listener, name)

        cls._sees_functions = overrides("on_function")
        cls._levels = tuple(
            level for names, level in _LEVELS if any(map(overrides, names))
        )

    def __enter__(self) -> Self:
        """Start to listen."""
        if self._levels:
            self.running = []
            with ExitStack() as stack:
                for level in self._levels:
                    stack.enter_context(level(self))
                self._opened = stack.pop_all()
        return super().__enter__() if self._sees_functions else self

    def __exit__(self, *raised: Any) -> None:
        """Stop listening."""
        if self._sees_functions:
            super().__exit__(*raised)
        if self._levels:
            self._opened.close()

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Hand a call of torch to the listener."""
        return self.on_function(func, args, kwargs or {})

    def on_function(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Return the result of a torch function."""
        return function(*args, **kwargs)

    def on_operator(self, operator: Any, args: Any, kwargs: Any) -> Any:
        """Return the result of an operator."""
        return operator(*args, **kwargs)

    def on_autograd_function(self, apply: Any, args: Any, kwargs: Any) -> Any:
        """Return the result of applying a subclass of ``autograd.Function``."""
        return apply(*args, **kwargs)

    def on_enter(self, module: nn.Module, args: Any) -> None:
        """Be told that a module, the last of ``running``, is about to run."""

    def on_leave(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """Be told that a module, the last of ``running``, has run or has failed."""

    def _left(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if module not in self.running:  # since it ran before the listener was entered
            return
        while self.running[-1] is not module:  # which Ctrl-C ended, unseen by hooks
            self.on_leave(self.running[-1], (), {}, None)
            self.running.pop()
        self.on_leave(module, args, kwargs, output)
        self.running.pop()


class _Operators(TorchDispatchMode):
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Do not load torch's compiler, which takes seconds."""
        return False

    def __init__(self, listener: Listener) -> None:
        super().__init__()
        self._call = listener.on_operator

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return self._call(func, args, kwargs or {})


class Installed:
    """A change to torch itself, which is there while any thread is inside.

    The first to enter makes it and the last to leave undoes it, in whatever order.

    Args:
        install: Makes the change, and returns the function that undoes it.
    """

    def __init__(self, install: Callable[[], Callable[[], None]]) -> None:
        self._install, self._lock, self._inside = install, Lock(), 0

    def __enter__(self) -> None:
        """Make the change, unless it is made."""
        with self._lock:
            if not self._inside:
                self._undo = self._install()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        """Undo the change, unless another thread needs it."""
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._undo()


class _Here(local):
    """The listeners of this thread, by what they listen to."""

    def __init__(self) -> None:
        self.modules: list[Listener] = []
        self.functions: list[Listener] = []


_here = _Here()


def _install_hooks() -> Callable[[], None]:
    def enter(module: nn.Module, args: Any) -> None:
        with torch._C.DisableTorchFunction():
            for listener in _here.modules:
                listener.running.append(module)
                listener.on_enter(module, args)

    # If a module raised, torch leaves out its keyword arguments.
    def leave(module: nn.Module, args: Any, *kwargs_and_output: Any) -> None:
        *kwargs, output = kwargs_and_output
        with torch._C.DisableTorchFunction():
            for listener in reversed(_here.modules):
                listener._left(module, args, kwargs[0] if kwargs else {}, output)

    handles = [
        hooks.register_module_forward_pre_hook(enter),
        hooks.register_module_forward_hook(leave, with_kwargs=True, always_call=True),
    ]

    def remove() -> None:
        for handle in handles:
            handle.remove()
            # Torch leaves this entry behind, and later warns of global hooks.
            hooks._global_forward_hooks_with_kwargs.pop(handle.id, None)

    return remove


def _install_apply() -> Callable[[], None]:
    plain = Function.__dict__["apply"]

    def apply(kind: Any, *args: Any, **kwargs: Any) -> Any:
        call = plain.__get__(None, kind)
        if not _here.functions:
            return call(*args, **kwargs)
        listener = _here.functions.pop()
        call = kind.apply if _here.functions else call
        try:
            return listener.on_autograd_function(call, args, kwargs)
        finally:
            _here.functions.append(listener)

    Function.apply = classmethod(apply)  # pyright: ignore

    def restore() -> None:
        Function.apply = plain

    return restore


_hooks, _apply = Installed(_install_hooks), Installed(_install_apply)


@contextmanager
def _registered(
    listener: Listener, listeners: list[Listener], installed: Installed
) -> Iterator[None]:
    with installed:
        listeners.append(listener)
        try:
            yield
        finally:
            listeners.remove(listener)


_LEVELS: tuple[Any, ...] = (
    (("on_enter", "on_leave"), lambda me: _registered(me, _here.modules, _hooks)),
    (("on_autograd_function",), lambda me: _registered(me, _here.functions, _apply)),
    (("on_operator",), _Operators),
)


@contextmanager
def unheard() -> Iterator[None]:
    """Hide calls of torch inside from all listeners."""
    with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
        yield


class LowestPrecision(Listener):
    """Record the lowest floating-point precision of operators that run inside.

    Attributes:
        eps: Relative spacing of that type, 0 before anything ran.
    """

    def __init__(self) -> None:
        self.eps = 0.0

    def on_operator(self, operator: Any, args: Any, kwargs: Any) -> Any:
        """Run an operator, and record the precision of its results."""
        result = operator(*args, **kwargs)
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor) and leaf.is_floating_point():
                if leaf.numel() > 1:
                    self.eps = max(self.eps, torch.finfo(leaf.dtype).eps)
        return result
