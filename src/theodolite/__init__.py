"""Theodolite: survey the loss landscape of deep networks.

Rooms are imported by name (``from theodolite import data, instruments, theory``);
importing the package itself loads nothing heavy.
"""

__version__ = "0.1.0"
