"""A page per instrument, from its file in the gallery, with the plot that it draws."""

import inspect
from importlib import import_module
from pathlib import Path
from types import ModuleType

import torch

from handbook import subjects
from handbook.gallery import TITLES
from handbook.settings import Nav
from theodolite.figures import house_style

_HEAD = """# Gallery

One page per instrument: what it means, how it is computed, when it lies, and a plot
that the build of this site has made. All look at the same small network, below.
[When numbers lie](when_numbers_lie.md) has the warnings of all on one page.
"""
_LIES = """# When numbers lie

A number can be right, with a correct error, and still mislead. This page has the
warnings of every instrument; a survey has
[its own](../survey.md#when-it-lies).
"""


def write(pages: Path, nav: Nav) -> None:
    """Draw and write all pages."""
    torch.set_num_threads(1)
    place = pages / "gallery"
    place.mkdir()
    nav.add("Gallery", "Gallery", "gallery/index.md")
    nav.add("Gallery", "When numbers lie", "gallery/when_numbers_lie.md")
    (place / "when_numbers_lie.md").write_text(when_numbers_lie())
    lines = [_HEAD]
    for name, title in TITLES.items():
        module = import_module(f"handbook.gallery.{name}")
        page = file_of(name)
        (place / page).write_text(page_of(name, module))
        with house_style():
            module.draw().savefig(place / f"{name}.svg")
        lines.append(f"- [{title}]({page}): {_first_line(module)}")
        nav.add("Gallery", title, f"gallery/{page}")
    code = inspect.getsource(subjects).split('"""', 2)[2].strip()
    lines.append(f'\n```python title="handbook/subjects.py"\n{code}\n```\n')
    (place / "index.md").write_text("\n".join(lines))


def file_of(name: str) -> str:
    """Return the file of an instrument's page: that of the gallery itself is index."""
    return f"{name}_.md" if name == "index" else f"{name}.md"


def page_of(name: str, module: ModuleType) -> str:
    """Return the page of an instrument."""
    rest = (module.__doc__ or "").partition("\n")[2]
    code = inspect.getsource(module).split('"""', 2)[2].strip()
    drawn = (inspect.getdoc(module.draw) or "").rstrip(".")
    return "\n".join(
        [
            f"# {TITLES[name]}\n",
            f"`{name}`: {_first_line(module)}\n",
            f"![{drawn}]({name}.svg)\n",
            f"{rest.strip()}\n",
            "## The code of the plot\n",
            f"```python\n{code}\n```\n",
        ]
    )


def when_numbers_lie() -> str:
    """Return a page of what can mislead, one section per instrument."""
    parts = [_LIES]
    for name, title in TITLES.items():
        text = import_module(f"handbook.gallery.{name}").__doc__ or ""
        lies = text.partition("## When it lies\n")[2].strip()
        parts.append(f"## {title}\n\n[`{name}`]({file_of(name)})\n\n{lies}\n")
    return "\n".join(parts)


def _first_line(module: ModuleType) -> str:
    first = (module.__doc__ or "").partition("\n")[0]
    return first[0].lower() + first[1:]
