"""Classifiers of a few layers trained by the dozen, and what they say of every sample.

Start with ``many``. ``samples`` is what they are trained on, ``recipe`` how,
``records`` what is kept; ``layers`` passes a stack of networks forward and back,
``stack`` trains one in lock-step and ``plain`` one network by any optimiser. Touches
images.
"""
