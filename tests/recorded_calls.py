"""Valid calls of public functions and constructors, recorded while examples run.

Every checked function calls its check first, for which a recorder stands in here. What
runs: the short calls of ``public_calls``, a study, a survey page, and the docstring
examples of names that were not called by then.
"""

import contextlib
import doctest
import inspect
import io
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


class Recorder:
    """The first call of each public name."""

    def __init__(self):
        self.calls = {}
        self.names = {}
        for name, value in public().items():
            call = value.__init__ if inspect.isclass(value) else value
            self.names.setdefault(call, []).append((name, value))

    def stand_in(self, names):
        """Return a check that records its arguments and accepts them."""

        def record(*args, **kwargs):
            for name, value in names:
                if not inspect.isclass(value):
                    self.calls.setdefault(name, (args, kwargs))
                elif type(args[0]) is value:
                    self.calls.setdefault(name, (args[1:], kwargs))

        return record

    @contextlib.contextmanager
    def recording(self):
        """Record the calls that are made meanwhile."""
        place = CHECKED.co_freevars.index("check")
        checks = [call.__closure__[place] for call in self.names]
        before = [check.cell_contents for check in checks]
        for check, names in zip(checks, self.names.values(), strict=True):
            check.cell_contents = self.stand_in(names)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                yield
        finally:
            for check, content in zip(checks, before, strict=True):
                check.cell_contents = content


def recorded(folder):
    """Return valid arguments by public name."""
    recorder = Recorder()
    with recorder.recording():
        for build, call in public_calls.CALLS.values():
            call(public_calls.made(build), "eval")
        for call in public_calls.TRAINING.values():
            call(public_calls.made(public_calls.Net), lambda: 0)
        for example in EXAMPLES:
            example(folder)
        for name, value in public().items():
            if name not in recorder.calls:
                run_example(value)
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
