"""Which files are searched for examples that run: those that hold one."""

from collections.abc import Generator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestItem, DoctestModule

Found = list[pytest.Collector]


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, Found, Found]:
    """Leave out the files without a prompt, which need not be imported to be read.

    Tests, too, would be searched, and four of five modules hold no example. Packages
    stay, to be imported before their modules, as they are by everybody else.
    """
    found = yield
    module = file_path.suffix == ".py" and file_path.name != "__init__.py"
    if not module or ">>>" in file_path.read_text():
        return found
    return [one for one in found if not isinstance(one, DoctestModule)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run an example where it is written, and not again where packages export it."""
    items[:] = [
        item
        for item in items
        if not isinstance(item, DoctestItem)
        or item.path.name != "__init__.py"
        or ">>>" in item.path.read_text()
    ]
