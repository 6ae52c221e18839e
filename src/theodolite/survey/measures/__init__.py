"""One file per measure or two: a model with data and an effort → rows.

Start at ``contract.py``; ``planning/running.py`` lists the measures. ``context`` holds
the model, opened by :mod:`theodolite.anatomy`, and what measures share.
"""
