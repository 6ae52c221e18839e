"""Where cells are computed: this process, a pool of processes, Ray.

Start with ``task``, what becomes of one cell, then ``execution``, which brings a
folder to its end with an executor: ``inprocess``, ``pool`` (``worker`` is a process
of it) or ``ray``; ``choose`` finds one by name. Touches folder and telling.
"""
