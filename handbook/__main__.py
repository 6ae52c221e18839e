"""Gather all pages of the site in a folder, with the settings that mkdocs reads.

Run as ``python -m handbook FOLDER``, then ``mkdocs build -f FOLDER/mkdocs.yml``.
"""

import argparse
import shutil
from pathlib import Path

from handbook import assemble, gallery_pages, paper_pages, reference, settings, tasks


def main() -> None:
    """Write everything into an empty folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    shutil.rmtree(folder, ignore_errors=True)
    pages = folder / "pages"
    pages.mkdir(parents=True)
    nav = settings.Nav()
    assemble.write(pages, nav)
    tasks.write(pages, nav)
    gallery_pages.write(pages, nav)
    paper_pages.write(pages, nav)
    reference.write(pages, nav)
    settings.write(folder, nav)


if __name__ == "__main__":
    main()
