"""Several image classifiers trained at once on one device.

Start with ``training``. ``recipe`` holds settings, data and results, ``run`` trains one
network, ``step`` is one update, replayed as a CUDA graph. Imports ``probes``.
"""
