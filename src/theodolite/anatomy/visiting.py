"""Which modules run, seen by hooks on all modules."""

import threading
from typing import Any

from torch import nn
from torch.nn.modules import module as hooks

from theodolite.anatomy.recording import Visit


class Visits:
    """Which modules run; nothing is put on the modules themselves.

    Args:
        model: Names the modules; one that it does not know is named by its class.
    """

    def __init__(self, model: nn.Module) -> None:
        self._paths = {id(module): name for name, module in model.named_modules()}
        self._found: list[Visit] = []
        self._stack: list[int] = []
        self._modules: list[nn.Module] = []
        self._entered: list[int] = []
        self._handles: list[Any] = []
        self._thread = threading.get_ident()
        self._calls = 0

    def start(self) -> None:
        """Watch all modules from now on."""
        self._handles = [
            hooks.register_module_forward_pre_hook(self._enter),
            hooks.register_module_forward_hook(self._leave, always_call=True),
        ]

    def end(self) -> None:
        """Watch no more."""
        for handle in self._handles:
            handle.remove()

    def here(self, call: int) -> tuple[int, str]:
        """Return the innermost visit and its path, and note how far the calls are."""
        self._calls = call + 1
        if not self._stack:
            return 0, ""
        visit = self._stack[-1]
        return visit, self._found[visit].module

    def innermost(self) -> int:
        """Return the visit that runs."""
        return self._stack[-1] if self._stack else 0

    def finished(self, calls: int) -> tuple[Visit, ...]:
        """Return all visits, of a run of some calls."""
        if self._found:
            return tuple(self._found)
        whole = Visit(index=0, module="", kind="", parent=None, first=0, stop=calls)
        return (whole,)

    def _enter(self, module: nn.Module, args: Any) -> None:
        if threading.get_ident() != self._thread:
            return
        known = self._paths.get(id(module))
        above = self._found[self._stack[-1]].module if self._stack else ""
        hidden = f"{above}.<{type(module).__name__}>".lstrip(".")
        self._stack.append(len(self._found))
        self._modules.append(module)
        self._found.append(
            Visit(
                index=len(self._found),
                module=hidden if known is None else known,
                kind=type(module).__name__,
                parent=self._stack[-2] if len(self._stack) > 1 else None,
                first=self._calls,
                stop=self._calls,
                recurrent=isinstance(module, nn.RNNBase | nn.RNNCellBase),
            )
        )

    def _leave(self, module: nn.Module, args: Any, output: Any) -> None:
        if threading.get_ident() != self._thread or module not in self._modules:
            return
        last = None
        while last is not module:
            last, visit = self._modules.pop(), self._stack.pop()
            self._found[visit] = Visit(
                **{**vars(self._found[visit]), "stop": self._calls}
            )
