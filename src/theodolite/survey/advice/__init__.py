"""Advice for a finding, as code that runs, and trials of the advice.

Start at ``prescribing.py``; the remedies are in ``surgeries.py``, ``weights.py`` and
``settings.py``. ``applying.py`` runs the code of a piece of advice on a copy,
``trials.py`` trains both copies and compares them.
"""
