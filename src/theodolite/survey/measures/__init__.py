"""One file per measure or two: a model with data and an effort → rows.

Start at ``contract.py``; ``planning/running.py`` lists the measures. ``context`` holds
the model and what measures share: the map of blocks and one gradient pass.
"""
