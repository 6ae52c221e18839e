"""Verdicts: compare a number and its interval with a claimed region.

Start reading at ``judgement``: a number is judged against a region, and judgements join
by *every*, *some* and *readings*; ``reasons`` puts them into words. ``region`` and
``quantity`` hold the two sides, ``selecting`` chooses rows and ``alive`` runs,
``sample`` and ``extremes`` make numbers of them, ``judges`` is what claims declare,
``claims`` is what studies hold.
Nothing here knows of papers, files or figures.
"""
