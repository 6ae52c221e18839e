"""Surveys, comparisons and watched trainings as one HTML file each.

Start at ``survey_page`` (survey and comparison) and ``training_page``, which lay out
what ``templates/`` shows. ``depth`` collects the numbers at each depth,
``cross_section`` draws them, ``network_charts`` draws numbers of the whole network,
``tables`` writes rows, ``words`` names quantities, ``writing`` makes the file.
Scales, charts and the base template are those of :mod:`theodolite.pages`.
"""
