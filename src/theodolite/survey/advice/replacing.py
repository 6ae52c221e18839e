"""Replace calls of torch wherever a model, a loss or a training step makes them."""

import functools
import textwrap
from typing import Any

from torch import nn

from theodolite.instruments import Listener

_CODE = """\
# Better: {better}. The same:
import torch
from torch.utils._pytree import tree_map
from theodolite.survey import CallReplacer
class Replaced(CallReplacer):
{begin}    def on_function(self, function, args, kwargs):
        name = function.__name__
{body}        return function(*args, **kwargs)
calls = Replaced()
calls.inside(model)
"""


def replacing(better: str, body: str, begin: str = "") -> str:
    """Return code that replaces calls of torch in a model.

    Args:
        better: What a person would change, in one line of code or words.
        body: Lines of ``on_function``, given ``name``; else the call is made as it is.
        begin: The line of ``begin``, and then other methods.
    """
    if begin:
        begin = textwrap.indent(f"def begin(self):\n    {begin}\n", "    ")
    body = textwrap.indent(body, " " * 8)
    return _CODE.format(better=better, body=body, begin=begin)


def replacing_one(better: str, names: tuple[str, ...], wrong: str, right: str) -> str:
    """Return code that replaces the results ``made`` of some functions where wrong."""
    return replacing(
        better,
        f"made = function(*args, **kwargs)\n"
        f"if name in {names!r} and {wrong}:\n"
        f"    return {right}\n"
        "return made\n",
    )


class CallReplacer(Listener):
    """Replaces calls of torch inside of what it is told to.

    A subclass overrides ``on_function``, which makes the call or another one. Where a
    step calls a loss and the loss a model, a call is replaced once.

    Example:
        >>> class Positive(CallReplacer):
        ...     def on_function(self, function, args, kwargs):
        ...         made = function(*args, **kwargs)
        ...         return made.abs() if function.__name__ == "cos" else made
        >>> import torch
        >>> Positive().inside(lambda x: x.cos())(torch.tensor(3.0)) > 0
        tensor(True)
    """

    _depth = 0

    def inside(self, what: Any) -> Any:
        """Replace the calls that a model, or a function, makes from now on.

        Args:
            what: A module, to which hooks are added, or any function.

        Returns:
            The module, or a function to be used in place of the given one.
        """
        if isinstance(what, nn.Module):
            what.register_forward_pre_hook(lambda module, args: self._enter())
            what.register_forward_hook(
                lambda module, args, outputs: self._leave(), always_call=True
            )
            return what

        @functools.wraps(what)
        def replaced(*args: Any, **kwargs: Any) -> Any:
            self._enter()
            try:
                return what(*args, **kwargs)
            finally:
                self._leave()

        return replaced

    def begin(self) -> None:
        """Be told that an outermost call begins."""

    def _enter(self) -> None:
        self._depth += 1
        if self._depth == 1:
            self.begin()
            self.__enter__()

    def _leave(self) -> None:
        self._depth -= 1
        if not self._depth:
            self.__exit__(None, None, None)
