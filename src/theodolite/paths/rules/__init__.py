"""What each operator does to polynomials when its gates are frozen.

- ``call``: a call with its arguments by name, and what a rule makes of it.
- ``linear``: calls that are linear up to constants, norms among them.
- ``gates``: piecewise linear calls, and smooth ones.

Start reading at ``call``.
"""
