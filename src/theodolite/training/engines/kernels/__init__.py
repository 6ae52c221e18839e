"""The arithmetic of the CPU engines, compiled by numba.

``vector`` writes vector instructions, ``fused_kernel`` and ``moments_kernel`` hold the
kernels, and ``compiled`` checks whether numba can compile here and cache its code.
"""
