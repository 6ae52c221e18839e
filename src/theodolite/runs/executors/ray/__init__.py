"""Cells on a Ray cluster, with or without a shared disk.

Start with ``cluster``; ``connection`` joins, ``code`` lets the package travel,
``capacity`` says what fits, ``flight`` follows the cells, ``worker`` computes one.
``crew`` is of actors that hold something and answer together, ``member`` one of them;
``sending`` says what cannot go there, and what came back as an error.
Touches the task and in-process executor.
"""
