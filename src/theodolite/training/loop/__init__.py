"""One model, trained in a plain loop: the truth that every engine is held to.

Start with ``loop``; ``descent`` is the rule of the update, ``trajectory`` what comes
back. Touches probes.
"""
