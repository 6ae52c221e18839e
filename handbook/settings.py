"""The settings of mkdocs: those written by hand, and the order of all pages."""

import json
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
SECTIONS = (
    "Fix a network",
    "Measure one",
    "Gallery",
    "Check a paper",
    "Extend it",
    "Reference",
)


@dataclass
class Nav:
    """The pages of each section, in order.

    Attributes:
        sections: Titles and files of pages, by section.
    """

    sections: dict[str, list[dict[str, str]]] = field(
        default_factory=lambda: {name: [] for name in SECTIONS}
    )

    def add(self, section: str, title: str, page: str) -> None:
        """Put a page at the end of a section."""
        self.sections[section].append({title: page})


def write(folder: Path, nav: Nav) -> None:
    """Write ``mkdocs.yml``; every mapping of JSON is one of YAML."""
    text = (HERE / "mkdocs.yml").read_text().replace("ROOT", str(HERE.parent))
    order: list[dict[str, object]] = [{"Home": "index.md"}]
    order += [{name: pages} for name, pages in nav.sections.items() if pages]
    (folder / "mkdocs.yml").write_text(f"{text}\nnav: {json.dumps(order)}\n")
