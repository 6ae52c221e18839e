"""What each operator does to polynomials, once its gates are frozen.

- ``call``: a call with its arguments by name, and what a rule makes of it.
- ``linear``: calls that are linear up to constants.
- ``gates``: piecewise linear ones.
- ``norms``: normalisation with the statistics of the true pass.
- ``smooth``: what is none of these.

Start reading at ``call``.
"""
