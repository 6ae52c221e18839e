"""A survey as one HTML file.

Start at ``survey_page``, which lays out what ``templates/`` shows. ``charts`` draws,
``tables`` writes rows. The base template is that of :mod:`theodolite.pages`.
"""
