"""The arithmetic of the processor's engines, by numba and by torch.

``vector`` and ``product`` are the building blocks, ``fused`` and ``moments`` the
kernels for numba; each ends in ``_torch`` where numba is missing. ``compiled`` says
whether it is, ``code_cache`` where its code is kept. Touches nothing of training.
"""
