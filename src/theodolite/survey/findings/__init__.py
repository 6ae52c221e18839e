"""Rules that read the rows of a survey and return findings.

Start at ``rulebook.py``, which lists all rules, then ``rule.py`` and ``evidence.py``.
The others hold a family of rules each. No torch: a survey read from a file is judged
like one just made.
"""
