"""Where cells are computed: this process, a pool of processes, Ray.

Start with ``task``, what becomes of one cell, then ``execute``, which brings a folder
to the end with an executor: ``inprocess``, ``pool`` (``worker`` is a process of it)
or ``ray``. Touches folder and telling.
"""
