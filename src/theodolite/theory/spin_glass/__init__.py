"""Critical points of spherical spin glasses: Littwin & Wolf (2016), Auffinger et al.

- ``critical_exponents``: mixtures, and how fast their critical points multiply.
- ``critical_counts``: the mean number of critical points at finite size.
- ``goe_spectrum``, ``goe_sampling``: eigenvalues of random symmetric matrices.
"""
