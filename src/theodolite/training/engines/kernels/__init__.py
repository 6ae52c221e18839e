"""The arithmetic of the CPU engines, compiled by numba.

``vector`` writes vector instructions, ``fused`` and ``moments`` are the kernels, and
``compiled`` checks whether numba can compile here and cache its code.
"""
