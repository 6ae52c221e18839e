"""A survey as data: blocks, outcomes of measures, findings, advice; no torch.

Start at ``whole_survey.py``; ``text.py`` makes what a terminal and a notebook show.
"""
