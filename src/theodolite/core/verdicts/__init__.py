"""Verdicts: compare a number and its interval with a claimed region.

Start reading at ``judgement``: a number is judged against a region, and judgements join
by *every*, *some* and *readings*; ``reasons`` puts them into words. ``selecting``
chooses rows and holds regions, ``alive`` chooses runs, ``sample`` and ``extremes`` make
a ``quantity`` of rows, ``judges`` is what claims declare, ``claims`` is what studies
hold, and the verdict.
Nothing here knows of papers, files or figures.
"""
