"""Cells on a Ray cluster, with or without a shared disk.

Start with ``cluster``; ``connection`` connects and sends the package to nodes that lack
it, ``capacity`` says how many cells fit, ``worker`` computes one.
Touches the task and in-process executor.
"""
