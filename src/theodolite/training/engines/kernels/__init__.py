"""The arithmetic of the CPU engines, compiled by numba or computed by torch.

``vector`` writes vector instructions, ``fused`` and ``moments`` are the numba kernels,
``torch_kernels`` replaces both without numba. ``compiled`` checks whether numba
can compile here and cache its code.
"""
