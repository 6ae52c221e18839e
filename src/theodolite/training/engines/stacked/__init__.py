"""The engine for any device: a stack of networks as batched products.

Start with ``engine``; ``passes`` is the arithmetic in torch. The same as one fused
kernel for a card: ``lanes`` lays out and launches CUDA C (``lanes.cu``, on top of
``primitives.cu``), which ``nvrtc`` compiles; ``triton`` launches one of Triton, by
tiles of samples (``kernel``); ``limits`` says what neither takes. ``samples`` is what
points train on, ``updates`` moves the weights. Touches the contract of engines.
"""
