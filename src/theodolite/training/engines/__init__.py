"""Engines: code that updates a stack of weights, and nothing else.

An engine keeps no state and knows nothing of probes, records or run folders. Start with
``protocol``, then ``strategies``, which chooses an engine by name. ``cpu`` holds the
engines that run on the processor (``kernels`` is their arithmetic), ``stacked`` the one
for any device. Imports ``core`` only.
"""
