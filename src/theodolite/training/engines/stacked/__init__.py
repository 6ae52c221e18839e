"""The engine for any device: a stack of networks as batched products.

Start with ``engine``; ``passes`` is the arithmetic in torch, ``triton`` launches
``kernel``, the same in one kernel, ``updates`` moves the weights. Touches the
contract of engines.
"""
