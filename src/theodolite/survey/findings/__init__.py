"""Rules that read the rows of a survey and return findings.

Start at ``rulebook.py``, which lists all rules, then ``rule.py`` and ``evidence.py``.
Each other file holds a family of rules. No file imports torch: a survey read from a
file is judged like a new one.
"""
