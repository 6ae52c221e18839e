"""Say what is wrong with a network, by which numbers, and what to change.

Call the package itself::

    result = theodolite.survey(model, (inputs, targets), optimizer=optimizer)
    print(result)

``result`` has ``findings``, ``advice``, ``rows()``, ``print(full=True)``,
``to_html(path)`` and ``to_json(path)``. To read the code, start at
``run/surveying.py``; ``records`` holds the classes of the result.
"""

import sys
from importlib import import_module
from inspect import Signature, getdoc, signature
from types import ModuleType
from typing import Any

from theodolite.core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
_DOC = __doc__ or ""


class _CallablePackage(ModuleType):
    # The package as a function: ``theodolite.survey(…)`` calls its ``survey``.

    def __call__(self, *args: Any, **settings: Any) -> Any:
        """Survey a model; see :func:`theodolite.survey.survey`."""
        return self.survey(*args, **settings)

    @property
    def __doc__(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What it does, then the arguments of the function, for ``help``."""
        text = (getdoc(self.survey) or "").partition("\nExample:")[0]
        arguments = ",\n    ".join(map(str, signature(self.survey).parameters.values()))
        return f"{_DOC}\nsurvey(\n    {arguments}\n)\n\n{text}"

    @property
    def __signature__(self) -> Signature:
        """That of the function, for help and completion; imports it."""
        return signature(self.survey)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by name, as plain modules do."""
        return import_module, (self.__name__,)


sys.modules[__name__].__class__ = _CallablePackage
