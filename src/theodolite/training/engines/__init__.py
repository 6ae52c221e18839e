"""Engines: what moves a stack of weights, and nothing else.

An engine keeps no state and knows of no probe, record or run folder. Start with
``contract``, then ``strategies``, which names the engines; ``fused`` and ``moments``
run on the processor (``cpu`` is their common part, ``kernels`` their arithmetic),
``stacked`` on any device. Touches core only.
"""
