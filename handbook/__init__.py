"""The documentation site: pages written by hand, pages that the build makes, and plots.

``python -m handbook FOLDER`` gathers all of it for mkdocs: ``assemble.py`` takes over
``docs/``, ``gallery/`` has a file per instrument, ``paper_pages.py`` writes a page per
paper, ``reference.py`` one per package; ``links.py`` checks what mkdocs made of it.
"""
