"""Valid calls of public functions and constructors, recorded while examples run.

Every checked call passes through one function of ``theodolite.core.arguments``, so a
profile sees its arguments. What runs: the short calls of ``public_calls``, a study, a
survey page, and the docstring examples of names that were not called by then.
"""

import contextlib
import doctest
import inspect
import io
import sys
from importlib import import_module
from pathlib import Path

from tests import public_calls
from tests.public_examples import EXAMPLES
from theodolite import core

SOURCE = Path(__file__).parents[1] / "src" / "theodolite"
PACKAGES = sorted(
    ".".join(stub.relative_to(SOURCE.parent).parent.parts)
    for stub in SOURCE.rglob("__init__.pyi")
)
CHECKED = core.column_major.__code__


def public():
    """Return the checked functions and constructors by name, before their checks."""
    found = {}
    for package in PACKAGES:
        module = import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            call = value.__init__ if inspect.isclass(value) else value
            if getattr(call, "__code__", None) is CHECKED:
                found[f"{package}.{name}"] = value
    return found


def raw(value):
    """Return the function behind a check."""
    return (value.__init__ if inspect.isclass(value) else value).__wrapped__


class Recorder:
    """The first call of each public name."""

    def __init__(self):
        self.names = {raw(value): name for name, value in public().items()}
        self.calls = {}

    def __call__(self, frame, event, arg):
        """See a call, for ``sys.setprofile``."""
        if event == "call" and frame.f_code is CHECKED:
            given = frame.f_locals
            name = self.names.get(given["function"])
            if name and name not in self.calls:
                own = name.rsplit(".", 1)[1] in given["public"].__name__
                first = given["function"].__name__ == "__init__"
                args = given["args"][1:] if first else given["args"]
                if own:
                    self.calls[name] = (args, dict(given["kwargs"]))

    def run(self, call):
        """Run something and record the calls in it."""
        sys.setprofile(self)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                call()
        finally:
            sys.setprofile(None)


def recorded(folder):
    """Return valid arguments by public name."""
    recorder = Recorder()
    for build, call in public_calls.CALLS.values():
        recorder.run(lambda b=build, c=call: c(public_calls.made(b), "eval"))
    for call in public_calls.TRAINING.values():
        recorder.run(lambda c=call: c(public_calls.made(public_calls.Net), lambda: 0))
    for example in EXAMPLES:
        recorder.run(lambda e=example: e(folder))
    for name, value in public().items():
        if name not in recorder.calls:
            recorder.run(lambda v=value: run_example(v))
    return recorder.calls


def run_example(value):
    """Run the docstring's examples, with checked names."""
    module = import_module(inspect.unwrap(value).__module__)
    package = import_module(".".join(module.__name__.split(".")[:2]))
    scope = vars(module) | {
        name: getattr(package, name) for name in package.__all__ if name in vars(module)
    }
    for test in doctest.DocTestFinder(recurse=False).find(
        inspect.unwrap(value), value.__name__, module, scope
    ):
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=len)
