"""A survey as data: blocks, outcomes of measures, findings, advice; no torch.

Start at ``whole_survey.py``. ``schema.py`` writes any of them as strict JSON and reads
it back; ``text.py`` makes what a terminal and a notebook show.
"""
