"""Rules for how each operator acts on polynomials when its gates are frozen.

- ``call``: a call with its arguments by name, and the result of a rule.
- ``linear``: calls that are linear up to constants, norms among them.
- ``gates``: piecewise linear calls, and smooth ones.

Start reading at ``call``.
"""
