"""The engine for any device: a stack of networks as batched products.

Start with ``engine``; ``passes`` is the arithmetic in torch, ``triton`` launches the
same as one kernel, by tiles of samples (``kernel``) or by columns (``columns``),
whichever is quicker on the card at hand, ``updates`` moves the weights. Touches the
contract of engines.
"""
