"""Survey any network: measure its skips and norms, report findings, advise changes.

The package is callable: ``theodolite.survey(model, batches)``. Start reading at
``whole/surveying.py``; ``records`` holds the classes of the result.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from theodolite.core import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)


class _Room(ModuleType):
    """The package as a function: ``theodolite.survey(…)`` calls its ``survey``."""

    def __call__(self, *args: Any, **settings: Any) -> Any:
        """Survey a model; see :func:`theodolite.survey.survey`."""
        return self.survey(*args, **settings)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by name, as plain modules do."""
        return import_module, (self.__name__,)


sys.modules[__name__].__class__ = _Room
