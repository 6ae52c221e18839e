"""Surveys, comparisons and watched trainings as one HTML file each.

Start at ``survey_page`` (survey and comparison) and ``training_page``, which lay out
what ``templates/`` shows. ``depth`` shows numbers by depth, ``network_charts`` those of
the whole network, ``tables`` writes rows, ``writing`` makes the file. Charts and the
base template are those of :mod:`theodolite.pages`.
"""
