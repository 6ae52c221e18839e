"""The documentation site: pages written by hand, pages that the build makes, and plots.

``python -m handbook FOLDER`` gathers all of it for mkdocs: ``assemble.py`` takes over
``docs/``, ``gallery/`` has a file an instrument, ``papers.py`` writes a page a paper,
``reference.py`` one per package; ``links.py`` checks what mkdocs made of it.
"""
